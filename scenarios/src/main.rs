//! Tells every story in every simulated world, and prints how each ended.

use std::io::IsTerminal;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scenarios::runner::{self, Outcome};
use scenarios::{Kind, Story, stories};

const USAGE: &str = "\
Tells the stories of krafka's client in scripted and simulated worlds.

usage: scenarios [--story NAME]... [--world scripted|simulated]... [--seed N | --seeds A..B] [--list] [--trace]

  --story NAME   only this story (may be given several times)
  --world WORLD  only in this kind of world
  --seed N       with this seed only: the same run again, exactly
  --seeds A..B   with each seed from A up to, not including, B
  --list         prints the stories and what they prove
  --trace        prints what the cluster was asked and answered";

/// Without `--seed` and `--seeds`, these are told.
const SEEDS: Range<u64> = 1..4;

struct Options {
    stories: Vec<Story>,
    kinds: Vec<Kind>,
    seeds: Range<u64>,
    trace: bool,
}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scenarios: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runs = runs(&options);
    let bar = ProgressBar::new(runs.len() as u64);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.set_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut outcomes = Vec::new();
    for (story, kind, seed) in runs {
        bar.set_message(format!("{} ({kind}, seed {seed})", story.name));
        let outcome = runner::run(&story, kind, seed);
        if let Err(failure) = &outcome.verdict {
            bar.println(format!("{} failed: {failure}", outcome.story));
        }
        if options.trace {
            outcome.trace.iter().for_each(|line| println!("{line}"));
        }
        outcomes.push(outcome);
        bar.inc(1);
    }
    bar.finish_and_clear();
    report(&outcomes)
}

/// Scripted worlds draw no faults: one seed tells all that they have to tell, unless one is asked for.
fn runs(options: &Options) -> Vec<(Story, Kind, u64)> {
    let mut runs = Vec::new();
    for story in &options.stories {
        for kind in options.kinds.iter().copied().filter(|kind| story.worlds.contains(*kind)) {
            let seeds = match kind {
                Kind::Simulated => options.seeds.clone(),
                _ => options.seeds.start..options.seeds.start + 1,
            };
            runs.extend(seeds.map(|seed| (*story, kind, seed)));
        }
    }
    runs
}

/// The table: one line for each story, then the commands that repeat what failed.
fn report(outcomes: &[Outcome]) -> ExitCode {
    println!("{:34} {:28} {:>14} {:>11}  verdict", "story", "worlds", "virtual time", "wall time");
    let mut names: Vec<&str> = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.verdict.is_ok() || outcome.verdict.is_err()) {
        if names.last() != Some(&outcome.story) {
            names.push(outcome.story);
        }
    }
    for name in &names {
        let of: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.story == *name).collect();
        let worlds = [Kind::Scripted, Kind::Simulated]
            .into_iter()
            .filter_map(|kind| {
                let count = of.iter().filter(|outcome| outcome.kind == kind).count();
                (count > 0).then(|| format!("{kind} × {count}"))
            })
            .collect::<Vec<_>>()
            .join(", ");
        let virtual_time: Duration = of.iter().map(|outcome| outcome.virtual_time).sum();
        let wall_time: Duration = of.iter().map(|outcome| outcome.wall_time).sum();
        let failed = of.iter().filter(|outcome| outcome.verdict.is_err()).count();
        let verdict = if failed == 0 { "holds".to_owned() } else { format!("FAILED {failed} of {}", of.len()) };
        let (virtual_s, wall_s) = (virtual_time.as_secs_f64(), wall_time.as_secs_f64());
        println!("{name:34} {worlds:28} {virtual_s:12.1} s {wall_s:9.2} s  {verdict}");
    }
    let failures: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.verdict.is_err()).collect();
    for outcome in &failures {
        if let Err(failure) = &outcome.verdict {
            println!("\n{} ({}, seed {}): {failure}", outcome.story, outcome.kind, outcome.seed);
        }
        println!("  faults: {}", outcome.plan);
        println!("  repeat: {}", outcome.command());
    }
    println!("\n{} passed, {} failed", outcomes.len() - failures.len(), failures.len());
    if failures.is_empty() && !outcomes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse() -> Result<Option<Options>, String> {
    use lexopt::prelude::{Long, Short, ValueExt};

    let all = stories::all();
    let mut options = Options { stories: Vec::new(), kinds: Vec::new(), seeds: SEEDS, trace: false };
    let mut has_seeds = false;
    let mut parser = lexopt::Parser::from_env();
    let words = |error: lexopt::Error| error.to_string();
    while let Some(argument) = parser.next().map_err(words)? {
        match argument {
            Long("story") => {
                let name = parser.value().map_err(words)?.string().map_err(words)?;
                let story = all.iter().find(|story| story.name == name);
                options.stories.push(*story.ok_or_else(|| format!("there is no story '{name}': see --list"))?);
            }
            Long("world") => {
                options.kinds.push(match parser.value().map_err(words)?.string().map_err(words)?.as_str() {
                    "scripted" => Kind::Scripted,
                    "simulated" => Kind::Simulated,
                    other => return Err(format!("there is no world '{other}' here: it is 'scripted' or 'simulated'")),
                })
            }
            Long("seed" | "seeds") if has_seeds => return Err("--seed and --seeds: one of them, once".to_owned()),
            Long("seed") => {
                has_seeds = true;
                let seed: u64 = parser.value().map_err(words)?.parse().map_err(words)?;
                options.seeds = seed..seed + 1;
            }
            Long("seeds") => {
                has_seeds = true;
                let range = parser.value().map_err(words)?.string().map_err(words)?;
                let parsed = range.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
                options.seeds = parsed.filter(|range: &Range<u64>| !range.is_empty()).ok_or_else(|| {
                    format!("'{range}' is no range of seeds: write A..B with A smaller than B, such as 0..100")
                })?;
            }
            Long("trace") => options.trace = true,
            Long("list") => {
                all.iter().for_each(|story| println!("{:34} {:?}: {}", story.name, story.worlds, story.proves));
                return Ok(None);
            }
            Long("help") | Short('h') => {
                println!("{USAGE}");
                return Ok(None);
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if options.stories.is_empty() {
        options.stories = all;
    }
    if options.kinds.is_empty() {
        options.kinds = vec![Kind::Scripted, Kind::Simulated];
    }
    Ok(Some(options))
}
