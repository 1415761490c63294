//! The laws on a bad network, and when the cluster goes back to what it was.

use super::*;

/// Rules about the network, between clients and nodes and between nodes.
const RULES: &[&str] = &[
    r#"{"when": {"event": "network"}, "times": "forever", "do": {"latency": {"ms": 300, "jitter_ms": 200}}}"#,
    r#"{"when": {"event": "network"}, "times": "forever", "do": {"bandwidth": {"bytes_per_second": 9000000}}}"#,
    r#"{"when": {"event": "network"}, "times": 20, "do": {"loss": {"probability": 0.5}}}"#,
    r#"{"when": {"event": "network", "node": 2, "towards": "node"}, "times": "forever", "do": "partition"}"#,
    r#"{"when": {"event": "network", "towards": "peer"}, "times": "forever", "until_ms": 4000, "do": "partition"}"#,
    r#"{"when": {"event": "network", "node": 1, "peer": 2}, "times": "forever", "do": "partition"}"#,
    r#"{"when": {"event": "network", "node": 3, "peer": 1}, "times": "forever", "after_ms": 500, "do": "partition"}"#,
    r#"{"when": {"event": "network", "node": 3, "peer": 2}, "times": "forever", "until_ms": 9000, "do": "partition"}"#,
    r#"{"when": {"apis": ["Produce"]}, "times": 3, "do": {"redeliver_ms": 700}}"#,
    r#"{"times": 1, "do": "half_open"}"#,
    r#"{"when": {"event": "connect"}, "times": 1, "do": {"speak_first": "SSH-2.0"}}"#,
];

/// No network makes the machine panic, late or unsound, and a copy of it does the same; nor does a restore.
#[test]
fn machine_stands_a_bad_network_and_going_back() {
    let mut sights = Sights::default();
    for seed in seeds() {
        let mut run = Run::new(seed, some_time());
        let (mut twin, mut twin_now) = (run.cluster.clone(), run.now);
        let (mut then, mut seen) = (run.cluster.clone(), Seen::new(&mut sights));
        for step in 0..STEPS {
            match run.chance.below(12) {
                0 | 1 => {
                    let rule = *run.pick(RULES);
                    for cluster in [&run.cluster, &twin] {
                        let text = serde_json::from_str(rule).expect("a legal rule");
                        cluster.state().faults.book().install(text, run.now).expect("there is room");
                    }
                }
                2 => {
                    run.cluster.state().faults.clear();
                    twin.state().faults.clear();
                }
                3 => then = run.cluster.clone(),
                4 if run.one_in(4) => {
                    run.cluster.restore(&then, run.now);
                    twin.restore(&then, twin_now);
                    seen.forget();
                }
                _ => {}
            }
            let happening = run.next();
            let what = format!("seed {seed}, step {step}: {happening:?}");

            let done = happening.befall(&mut run.cluster, &mut run.now);

            assert_eq!(happening.befall(&mut twin, &mut twin_now), done, "{what}: the twin differs");
            seen.assert_sound(&run.cluster, &happening);
        }
    }
}
