//! Time: ours and theirs next to each other, in one run.

use criterion::{Criterion, criterion_group, criterion_main};
use krafka_bench_peers::Pair;

fn peers(criterion: &mut Criterion) {
    for Pair { name, mut ours, mut theirs } in krafka_bench_peers::all() {
        let mut group = criterion.benchmark_group(name);
        group.bench_function("krafka", |bencher| bencher.iter(&mut ours));
        group.bench_function("kafka-protocol", |bencher| bencher.iter(&mut theirs));
        group.finish();
    }
}

criterion_group!(benches, peers);
criterion_main!(benches);
