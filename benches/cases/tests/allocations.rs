//! How often each case allocates: exact, the same on every machine, and not to become more unnoticed.

/// Each case, and how many allocations one run of it makes.
const ALLOCATIONS: [(&str, u64); 20] = [
    ("decode metadata v12, 100 x 10 x 3", 102),
    ("encode metadata v12, 100 x 10 x 3", 3),
    ("decode fetch v13, 100 x 10 x 1 KiB", 101),
    ("encode fetch v13, 100 x 10 x 1 KiB", 3),
    ("decode produce v11, 6 x 128 KiB", 2),
    ("encode produce v11, 6 x 128 KiB", 6),
    ("decode produce v11, 100 x 10 x 1 KiB", 101),
    ("encode produce v11, 100 x 10 x 1 KiB", 4),
    ("decode offset commit v9, 100 x 10", 101),
    ("encode offset commit v9, 100 x 10", 4),
    ("decode api versions v3", 1),
    ("encode api versions v3", 3),
    ("encode 1,000 records, none", 2),
    ("decode 1,000 records, none, all at once", 1),
    ("decode 1,000 records, none, one by one", 0),
    ("decode 1,000 records, none, borrowed", 0),
    ("encode 1,000 records, lz4", 2),
    ("decode 1,000 records, lz4, all at once", 1),
    ("decode 1,000 records, lz4, one by one", 0),
    ("decode 1,000 records, lz4, borrowed", 0),
];

/// One vector per array of structures, and nothing per string, list of node ids, record set or record.
#[test]
fn every_case_allocates_as_often_as_is_written_here() {
    let counted: Vec<(String, u64)> = krafka_bench_cases::all()
        .into_iter()
        .map(|mut case| {
            // Buffers and tables that are kept from one run to the next are there from now on.
            case.run();
            case.run();
            let info = allocation_counter::measure(|| case.run());
            (case.name, info.count_total)
        })
        .collect();

    let counted: Vec<(&str, u64)> = counted.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(counted, ALLOCATIONS);
}
