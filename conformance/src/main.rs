//! Runs the stories that break nothing, and the cross-checks with Java's tools, on a cluster.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use conformance::cross_checks;
use conformance::doors::Doors;
use conformance::java::Jars;
use conformance::provider::Cluster;
use conformance::report::{self, Line};
use scenarios::{Kind, Result, Story, stories, worlds};

const USAGE: &str = "\
Runs krafka's stories on a cluster.

usage: conformance CLUSTER [--nodes N] [--story NAME]... [--no-java | --doors]

  CLUSTER        fake: the fake broker over TCP
                 4.4.0, 3.9.2, …: that Kafka, from its jars (needs Java 17 and Maven)
                 testcontainers: a Kafka in a container (needs the feature and an engine)
                 external: the cluster behind KRAFKA_BOOTSTRAP
  --nodes N      how many nodes a started cluster has (default: 3 for fake, else 1)
  --story NAME   only this story (may be given several times), and no cross-checks
  --no-java      without the cross-checks with Java's console tools, and the ways in by SASL and TLS
  --doors        only the ways in by SASL and TLS, of a Kafka that is started";

struct Options {
    cluster: String,
    nodes: Option<u16>,
    stories: Vec<Story>,
    java: bool,
    doors: bool,
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
    if options.doors {
        go_through(&options.cluster, &mut lines)?;
        return Ok(lines);
    }
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
        if let Cluster::Local(kafka) = &cluster {
            go_through(kafka.version(), &mut lines)?;
        }
    }
    Ok(lines)
}

/// Tries each way into a Kafka of this version.
fn go_through(version: &str, lines: &mut Vec<Line>) -> Result<()> {
    let doors = Doors::start(version)?;
    for (name, try_it) in doors.checks() {
        let began = now();
        let verdict = try_it();
        let line = Line { name, took: began.elapsed(), verdict };
        report::print(&line);
        lines.push(line);
    }
    Ok(())
}

fn parse() -> Result<Option<Options>, String> {
    use lexopt::prelude::{Long, Short, Value, ValueExt};

    let all: Vec<Story> = stories::all().into_iter().filter(|story| story.worlds.contains(Kind::Real)).collect();
    let mut options = Options { cluster: String::new(), nodes: None, stories: Vec::new(), java: true, doors: false };
    let mut parser = lexopt::Parser::from_env();
    let words = |error: lexopt::Error| error.to_string();
    while let Some(argument) = parser.next().map_err(words)? {
        match argument {
            Value(cluster) if options.cluster.is_empty() => options.cluster = cluster.string().map_err(words)?,
            Long("nodes") => options.nodes = Some(parser.value().map_err(words)?.parse().map_err(words)?),
            Long("story") => {
                let name = parser.value().map_err(words)?.string().map_err(words)?;
                let story = all.iter().find(|story| story.name == name);
                options.stories.push(*story.ok_or_else(|| format!("there is no story '{name}' for real clusters"))?);
            }
            Long("no-java") => options.java = false,
            Long("doors") => options.doors = true,
            Long("help") | Short('h') => {
                println!("{USAGE}");
                return Ok(None);
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if options.cluster.is_empty() {
        return Err("which cluster?".to_owned());
    }
    if !Cluster::is_known(&options.cluster) {
        return Err(format!("there is no cluster '{}'", options.cluster));
    }
    if options.nodes == Some(0) {
        return Err("--nodes must be at least 1".to_owned());
    }
    if options.stories.is_empty() {
        options.stories = all;
    } else {
        options.java = false;
    }
    Ok(Some(options))
}

/// Sets the names of this run apart from those of earlier ones on the same cluster.
#[expect(clippy::disallowed_methods, reason = "a suite on a real cluster runs at a real time")]
fn run_id() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

#[expect(clippy::disallowed_methods, reason = "a suite on a real cluster runs at a real time")]
fn now() -> Instant {
    Instant::now()
}
