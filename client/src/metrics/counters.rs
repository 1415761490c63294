//! [`Counter`], and the sets of counters that producers and consumers keep.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts up.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares the counters behind a public snapshot, one for each of its fields. What one of many counts is counted for
/// all of them as well, so that nothing is lost when it is dropped.
macro_rules! counters {
    ($counters:ident => $snapshot:ident: $($count:ident),*; $($time:ident),*) => {
        #[doc = concat!("The counters behind [`", stringify!($snapshot), "`].")]
        #[derive(Debug, Default)]
        pub(crate) struct $counters {
            $(pub(crate) $count: $crate::metrics::Counter,)*
            $(pub(crate) $time: $crate::metrics::Recorder,)*
            all: Option<std::sync::Arc<$counters>>,
        }

        impl $counters {
            /// The counters of one of many.
            pub(crate) fn one_of(all: &std::sync::Arc<Self>) -> Self {
                Self { all: Some(all.clone()), ..Self::default() }
            }

            /// Counts for one, and for all.
            pub(crate) fn add(&self, which: impl Fn(&Self) -> &$crate::metrics::Counter, n: u64) {
                which(self).add(n);
                if let Some(all) = &self.all {
                    which(all).add(n);
                }
            }

            $(
                /// Notes a time for one, and for all.
                pub(crate) fn $time(&self, took: std::time::Duration) {
                    self.$time.record(took);
                    if let Some(all) = &self.all {
                        all.$time.record(took);
                    }
                }
            )*

            pub(crate) fn read(&self) -> $snapshot {
                $snapshot { $($count: self.$count.get(),)* $($time: self.$time.read(),)* }
            }
        }
    };
}

pub(crate) use counters;
