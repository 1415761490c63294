//! How the handle's calls take records, wait for more, and change the core.

use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use krafka_protocol::Str;

use super::chunk::{Decoding, Stop};
use super::commit::Ticket;
use super::core::{Core, Mode};
use super::engine::Input;
use super::shared::{Shared, closed};
use super::{Consumer, ConsumerRecord, Reading, not_assigned};
use crate::{KrafkaError, Result, TopicPartition, drive};

/// While it lives, a call waits: it has nothing to work on.
struct Waiting<'a>(&'a Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.core().waiting -= 1;
    }
}

impl Consumer {
    /// A call of `poll` or `recv` begins.
    pub(super) fn enter(&self) -> Result<()> {
        let mut core = self.shared.core();
        if let Some(error) = &core.closed {
            return Err(error.clone());
        }
        if matches!(core.mode, Mode::Idle) {
            return Err(nothing_to_read());
        }
        if core.enter() && core.wake() {
            drop(core);
            self.tell(Input::Woken)?;
        }
        Ok(())
    }

    /// Takes up to `most` records that have arrived. Does not wait.
    pub(super) fn drain(&self, most: usize, records: &mut Vec<ConsumerRecord>) -> Result<()> {
        let Reading { decoding, .. } = &mut *self.reading();
        let before = records.len();
        self.drain_with(most, records, decoding)?;
        self.shared.counters.add(|counters| &counters.records, (records.len() - before) as u64);
        Ok(())
    }

    /// Takes the next record that has arrived. Does not wait.
    pub(super) fn next_record(&self) -> Result<Option<ConsumerRecord>> {
        let Reading { decoding, single } = &mut *self.reading();
        self.drain_with(1, single, decoding)?;
        let record = single.pop();
        self.shared.counters.add(|counters| &counters.records, u64::from(record.is_some()));
        Ok(record)
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.decoding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drain_with(&self, most: usize, records: &mut Vec<ConsumerRecord>, decoding: &mut Decoding) -> Result<()> {
        let mut core = self.shared.core();
        if let Some(error) = &core.closed {
            return Err(error.clone());
        }
        if std::mem::take(&mut core.woken) {
            return Err(KrafkaError::Wakeup);
        }
        if let Some(error) = core.complaint() {
            return Err(error);
        }
        decoding.renew_budget();
        while records.len() < most {
            let Some((slot, mut chunk)) = core.take() else { break };
            drop(core);
            let before = records.len();
            let decoded = chunk.decode(most - before, decoding, records);
            core = self.shared.core();
            let stop = match decoded {
                Ok(stop) => stop,
                Err(error) if records.is_empty() => match core.stuck(slot, &chunk, error) {
                    Some(error) => return Err(error),
                    None => continue,
                },
                // What came before the fault is handed out first; the next call meets the fault.
                Err(_) => {
                    let (is_handed_out, _) = core.delivered(slot, chunk, false);
                    if !is_handed_out {
                        records.truncate(before);
                    }
                    break;
                }
            };
            let (is_handed_out, has_room) = core.delivered(slot, chunk, stop == Stop::UsedUp);
            if !is_handed_out {
                records.truncate(before);
            }
            if has_room && core.wake() {
                self.tell(Input::Woken)?;
            }
            if stop == Stop::OverBudget {
                if !records.is_empty() {
                    // What is left of it comes with the next call, when these may be gone.
                    break;
                }
                // It went for what nobody is given: records in front of the position, or a partition that was lost.
                decoding.renew_budget();
            }
        }
        Ok(())
    }

    /// Waits until `look` finds something, as one who waits for records: a rebalance may go ahead meanwhile.
    pub(super) async fn wait<T>(
        &self,
        deadline: Option<Instant>,
        look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let must_tell = {
            let mut core = self.shared.core();
            core.begin_waiting() && core.wake()
        };
        let _waiting = Waiting(&self.shared);
        if must_tell {
            self.tell(Input::Woken)?;
        }
        self.wait_until(deadline, look).await
    }

    /// Waits until `look` finds something; `None` at the deadline.
    pub(super) async fn wait_until<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut late = std::pin::pin!(drive::sleep_until(deadline));
        loop {
            let mut arrived = std::pin::pin!(self.shared.arrivals.notified());
            // Enlisted before looking, so that what arrives in between is not missed.
            arrived.as_mut().enable();
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            tokio::select! {
                // What has arrived at the deadline is returned.
                biased;
                () = arrived => {}
                () = &mut late => return look(),
            }
        }
    }

    /// Tells the task something.
    pub(super) fn tell(&self, input: Input) -> Result<()> {
        self.inputs.send(input).map_err(|_| closed())
    }

    /// Asks the task for something, and waits until it is done.
    pub(super) async fn ask(&self, input: impl FnOnce(Ticket) -> Input) -> Result<()> {
        if let Some(error) = &self.shared.core().closed {
            return Err(error.clone());
        }
        let (ticket, answer) = self.shared.ticket();
        self.tell(input(ticket))?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// The group's name, which `call` needs.
    pub(super) fn group(&self, call: &str) -> Result<Str> {
        let group = self.config.group.as_ref().map(|group| group.id.clone());
        group.ok_or_else(|| {
            KrafkaError::illegal_state(format!(
                "{call}: this consumer has no group; make it with Kafka::consumer(group) instead of \
                 consumer_without_group()"
            ))
        })
    }

    pub(super) fn check_mode(&self, call: &str, fits: impl FnOnce(&Mode) -> bool) -> Result<()> {
        let core = self.shared.core();
        if let Some(error) = &core.closed {
            return Err(error.clone());
        }
        if fits(&core.mode) {
            return Ok(());
        }
        let has = if core.mode == Mode::Assigned { "partitions assigned by hand" } else { "subscribed to topics" };
        Err(KrafkaError::illegal_state(format!("{call}: this consumer has {has}; call unsubscribe() first")))
    }

    /// Changes one partition, and has the task look.
    pub(super) fn change(
        &self,
        call: &str,
        name: &TopicPartition,
        change: impl FnOnce(&mut Core, usize),
    ) -> Result<()> {
        let mut core = self.shared.core();
        if let Some(error) = &core.closed {
            return Err(error.clone());
        }
        let slot = core.subscription.slot(name).ok_or_else(|| not_assigned(call, name))?;
        change(&mut core, slot);
        if core.wake() {
            drop(core);
            self.tell(Input::Woken)?;
        }
        Ok(())
    }

    pub(super) fn set_paused(&self, call: &str, names: &[TopicPartition], paused: bool) -> Result<()> {
        let core = self.shared.core();
        if let Some(name) = names.iter().find(|name| core.subscription.slot(name).is_none()) {
            return Err(not_assigned(call, name));
        }
        drop(core);
        for name in names {
            self.change(call, name, |core, slot| core.set_paused(slot, paused))?;
        }
        // Records that were kept may be waited for.
        self.shared.arrivals.notify_waiters();
        Ok(())
    }
}

#[cold]
fn nothing_to_read() -> KrafkaError {
    KrafkaError::illegal_state("the consumer has nothing to read: call subscribe or assign before poll and recv")
}
