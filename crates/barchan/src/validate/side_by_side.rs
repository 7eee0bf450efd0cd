//! Trials that are made side by side: most are too small to keep several cores busy by themselves.

use super::method::Method;
use super::record::Record;
use super::table::Case;
use super::trial::Setting;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// A trial to be made.
pub struct Plan {
    /// Of which case.
    pub case: &'static Case,
    /// With what turned.
    pub setting: Setting,
    /// By which method.
    pub method: &'static Method,
    /// Changes to its scenes, each written `path.to.key=value`.
    pub set: Arc<[String]>,
}

/// Makes the trials on `threads` threads together and gives their records to `tell` in the order of the plans. No figure depends on
/// how many threads a trial has.
pub fn make_all(plans: &[Plan], threads: usize, mut tell: impl FnMut(&Record)) -> Vec<Record> {
    let workers = threads.min(plans.len()).max(1);
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let mut records = Vec::new();
    thread::scope(|scope| {
        for worker in 0..workers {
            let (send, next) = (send.clone(), &next);
            // The first ones take what is left over.
            let share = threads / workers + usize::from(worker < threads % workers);
            scope.spawn(move || {
                let own = rayon::ThreadPoolBuilder::new().num_threads(share.max(1));
                let own = own.build().ok();
                while let Some((index, plan)) = take(plans, next) {
                    let make = || Record::make(plan);
                    // Without threads of its own it shares those of all.
                    let record = own.as_ref().map_or_else(make, |own| own.install(make));
                    if send.send((index, record)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut early = BTreeMap::new();
        for (index, record) in receive {
            early.insert(index, record);
            while let Some(record) = early.remove(&records.len()) {
                tell(&record);
                records.push(record);
            }
        }
    });
    records
}

/// The next plan that nobody has taken, and its place.
fn take<'a>(plans: &'a [Plan], next: &AtomicUsize) -> Option<(usize, &'a Plan)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, plans.get(index)?))
}
