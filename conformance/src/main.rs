//! Runs the stories that break nothing, and the cross-checks with Java's tools, on a cluster.

use std::process::ExitCode;
use std::time::Duration;

use conformance::clock::{now, run_id};
use conformance::cross_checks;
use conformance::doors::Doors;
use conformance::java::Jars;
use conformance::provider::Cluster;
use conformance::provider::stage::{Ground, Stage};
use conformance::report::{self, Line};
use conformance::trials::{self, Trial};
use scenarios::{Kind, Result, Story, stories, worlds};

const USAGE: &str = "\
Runs krafka's stories on a cluster.

usage: conformance CLUSTER [--nodes N] [--story NAME]... [--trial NAME]... [--no-java] [--doors] [--trials] [--long]

  CLUSTER        fake: the fake broker over TCP
                 4.4.0, 3.9.2, …: that Kafka, from its jars (needs Java 17 and Maven)
                 testcontainers: a Kafka in a container (needs the feature and an engine)
                 external: the cluster behind KRAFKA_BOOTSTRAP
  --nodes N      how many nodes a started cluster has (default: 3 for fake, else 1)
  --story NAME   only this story (may be given several times)
  --trial NAME   only this trial (may be given several times)
  --no-java      without the cross-checks with Java's console tools
  --doors        only the ways in by SASL and TLS, of the fake or a Kafka that is started
  --trials       only the trials, on the fake or a Kafka that is started
  --long         with the trials that take long";

struct Options {
    cluster: String,
    nodes: Option<u16>,
    stories: Vec<Story>,
    java: bool,
    doors: bool,
    trials: Vec<Trial>,
}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match suite(&options) {
        Ok(lines) if report::sum(&lines) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("conformance: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn suite(options: &Options) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    if options.java || !options.stories.is_empty() {
        tell_stories(options, &mut lines)?;
    }
    tries(options, &mut lines)?;
    Ok(lines)
}

/// Tells the stories on a cluster, and has Java's tools read what is there.
fn tell_stories(options: &Options, lines: &mut Vec<Line>) -> Result<()> {
    let nodes = options.nodes.unwrap_or(if options.cluster == "fake" { 3 } else { 1 });
    let began = now();
    let cluster = Cluster::start(&options.cluster, nodes)?;
    println!("{} at {}, ready in {:.1} s", options.cluster, cluster.bootstrap(), began.elapsed().as_secs_f64());
    let run = run_id();
    let mut line = |name: String, took: Duration, verdict: Result<()>| {
        let line = Line { name, took, verdict };
        report::print(&line);
        lines.push(line);
    };
    for (number, story) in (0..).zip(&options.stories) {
        let outcome = worlds::real::run(story, cluster.bootstrap(), run.wrapping_add(number));
        line(story.name.to_owned(), outcome.wall_time, outcome.verdict);
    }
    if options.java {
        let jars = Jars::fetch(cluster.tools_version())?;
        let home = std::env::temp_dir().join(format!("krafka-cross-checks-{run:x}"));
        std::fs::create_dir_all(&home)?;
        let mut check = |name: String, check: &dyn Fn() -> Result<()>| {
            let began = now();
            let verdict = check();
            line(name, began.elapsed(), verdict);
        };
        for codec in cross_checks::written() {
            let ours = || cross_checks::java_reads_ours(&jars, &home, cluster.bootstrap(), codec, run);
            check(format!("java {} reads ours, {codec}", jars.version()), &ours);
        }
        for codec in cross_checks::READ {
            let javas = || cross_checks::we_read_javas(&jars, &home, cluster.bootstrap(), codec, run);
            check(format!("we read java {}'s, {codec}", jars.version()), &javas);
        }
        std::fs::remove_dir_all(&home)?;
    }
    Ok(())
}

/// Tries each way into a cluster, and then what it takes to stay connected to it.
fn tries(options: &Options, lines: &mut Vec<Line>) -> Result<()> {
    let mut line = |name: String, try_it: &dyn Fn() -> Result<()>| {
        let began = now();
        let verdict = try_it();
        let line = Line { name, took: began.elapsed(), verdict };
        report::print(&line);
        lines.push(line);
    };
    for ground in [Ground::Doors, Ground::Nodes, Ground::Releases] {
        let trials = options.trials.iter().filter(|trial| trial.ground == ground);
        let ways = options.doors && ground == Ground::Doors;
        if !ways && trials.clone().count() == 0 {
            continue;
        }
        let stage = Stage::start(&options.cluster, ground)?;
        for (name, try_it) in Doors::of(&stage).checks().into_iter().filter(|_| ways) {
            line(name, &try_it);
        }
        for trial in trials {
            line(trial.title(), &|| trial.run_on(&stage));
        }
    }
    Ok(())
}

fn parse() -> Result<Option<Options>, String> {
    use lexopt::prelude::{Long, Short, Value, ValueExt};

    let all: Vec<Story> = stories::all().into_iter().filter(|story| story.worlds.contains(Kind::Real)).collect();
    let (mut cluster, mut nodes, mut stories, mut trials) = (String::new(), None, Vec::new(), Vec::new());
    let (mut no_java, mut only_doors, mut only_trials, mut long) = (false, false, false, false);
    let mut parser = lexopt::Parser::from_env();
    let words = |error: lexopt::Error| error.to_string();
    while let Some(argument) = parser.next().map_err(words)? {
        match argument {
            Value(name) if cluster.is_empty() => cluster = name.string().map_err(words)?,
            Long("nodes") => nodes = Some(parser.value().map_err(words)?.parse().map_err(words)?),
            Long("story") => {
                let name = parser.value().map_err(words)?.string().map_err(words)?;
                let story = all.iter().find(|story| story.name == name);
                stories.push(*story.ok_or_else(|| format!("there is no story '{name}' for real clusters"))?);
            }
            Long("trial") => {
                let name = parser.value().map_err(words)?.string().map_err(words)?;
                let trial = trials::all().into_iter().find(|trial| trial.name == name);
                trials.push(trial.ok_or_else(|| format!("there is no trial '{name}'"))?);
            }
            Long("no-java") => no_java = true,
            Long("doors") => only_doors = true,
            Long("trials") => only_trials = true,
            Long("long") => long = true,
            Long("help") | Short('h') => {
                println!("{USAGE}");
                return Ok(None);
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if cluster.is_empty() {
        return Err("which cluster?".to_owned());
    }
    if !Cluster::is_known(&cluster) {
        return Err(format!("there is no cluster '{cluster}'"));
    }
    if nodes == Some(0) {
        return Err("--nodes must be at least 1".to_owned());
    }
    let is_choice = only_doors || only_trials || !stories.is_empty() || !trials.is_empty();
    let is_ours = !matches!(&*cluster, "external" | "testcontainers");
    if !is_choice {
        stories = all;
    }
    if is_ours && (only_trials || !is_choice) {
        trials = trials::all().into_iter().filter(|trial| long || !trial.is_long).collect();
        trials.retain(|trial| trial.ground != Ground::Releases || cluster != "fake");
    }
    let (java, doors) = (!is_choice && !no_java, is_ours && (only_doors || !is_choice));
    Ok(Some(Options { cluster, nodes, stories, java, doors, trials }))
}
