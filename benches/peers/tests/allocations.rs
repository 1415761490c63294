//! Allocations: ours and theirs, printed as a table (`cargo test -- --nocapture`).

use krafka_bench_peers::Pair;

#[test]
fn we_never_allocate_more_often_than_they_when_decoding() {
    println!("{:>8} {:>8}  allocations of krafka and of kafka-protocol", "krafka", "theirs");
    for Pair { name, mut ours, mut theirs } in krafka_bench_peers::all() {
        // Buffers that are kept from one run to the next are there from now on.
        ours();
        theirs();
        let [ours, theirs] = [&mut ours, &mut theirs].map(|run| allocation_counter::measure(run).count_total);

        println!("{ours:>8} {theirs:>8}  {name}");
        assert!(ours <= theirs || name.starts_with("encode"), "{name}: {ours} allocations, theirs are {theirs}");
    }
}
