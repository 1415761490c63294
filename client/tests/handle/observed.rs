//! What a client tells `tracing`, kept for tests to look at.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Level, Metadata, Subscriber, span};

/// Lets each thread hear all lines, before a subscriber is set for one.
///
/// `tracing` remembers of each line whether anybody wants it. While there is but one subscriber, it asks that of the
/// thread that comes to the line first: where another test has none, nobody hears the line any more. With two it asks
/// both.
pub(super) fn hear_all() {
    static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Observed::default()));
    LazyLock::force(&ANOTHER);
}

/// The fields of a line or a span, as text.
pub(super) type Fields = BTreeMap<&'static str, String>;

/// Keeps all lines and spans of this thread while its guard lives.
#[derive(Clone, Default)]
pub(super) struct Observed(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    lines: Vec<(Level, String)>,
    /// By number; and whether it has ended.
    spans: Vec<(Fields, bool)>,
    /// How many handles of a span there are.
    handles: BTreeMap<u64, usize>,
}

impl Observed {
    pub(super) fn start() -> (Self, DefaultGuard) {
        hear_all();
        let observed = Self::default();
        (observed.clone(), tracing::subscriber::set_default(observed))
    }

    /// Takes the lines of this level and worse.
    pub(super) fn lines(&self, level: Level) -> Vec<String> {
        self.levelled().into_iter().filter(|line| line.0 <= level).map(|line| line.1).collect()
    }

    /// Takes all lines, each with its level.
    pub(super) fn levelled(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.kept().lines)
    }

    /// The spans of this name that have ended.
    pub(super) fn spans(&self, name: &str) -> Vec<Fields> {
        let kept = self.kept();
        let ended = kept.spans.iter().filter(|(_, has_ended)| *has_ended).map(|(fields, _)| fields);
        ended.filter(|fields| fields["name"] == name).cloned().collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("nobody panics with it")
    }
}

struct Texts<'a>(&'a mut Fields);

impl Visit for Texts<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Observed {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("krafka")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields::from([("name", attributes.metadata().name().to_owned())]);
        attributes.record(&mut Texts(&mut fields));
        let mut kept = self.kept();
        kept.spans.push((fields, false));
        let number = kept.spans.len() as u64;
        kept.handles.insert(number, 1);
        span::Id::from_u64(number)
    }

    fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Texts(&mut self.kept().spans[id.into_u64() as usize - 1].0));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Texts(&mut fields));
        let text: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.kept().lines.push((*event.metadata().level(), text.join(" ")));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}

    fn clone_span(&self, id: &span::Id) -> span::Id {
        *self.kept().handles.entry(id.into_u64()).or_default() += 1;
        id.clone()
    }

    fn try_close(&self, id: span::Id) -> bool {
        let (mut kept, number) = (self.kept(), id.into_u64());
        let handles = kept.handles.get_mut(&number).expect("it was made");
        *handles -= 1;
        let has_ended = *handles == 0;
        kept.spans[number as usize - 1].1 = has_ended;
        has_ended
    }
}
