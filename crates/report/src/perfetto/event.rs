//! One event, and the texts that it is the first to refer to.

use std::collections::HashMap;
use std::hash::Hash;

use super::fields::{annotation, event, interned, interned_text, source_location};
use crate::Timeline;
use crate::protobuf::Message;

/// `TrackEvent.Type`.
#[derive(Clone, Copy)]
pub(super) enum EventKind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// The key of an argument of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) &'static str);

/// Texts with the numbers under which the sequence knows them.
struct Interned<K>(HashMap<K, u64>);

impl<K> Default for Interned<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Interned<K> {
    /// Returns the number of a text, and `true` if it is new.
    fn number(&mut self, key: K) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}

/// Builds one event after the other.
#[derive(Default)]
pub(super) struct EventBuilder {
    event: Message,
    /// The texts that the sequence does not know yet.
    new: Message,
    argument: Message,
    is_taken: bool,
    categories: Interned<&'static str>,
    /// By their index in the time line.
    names: Interned<u32>,
    keys: Interned<&'static str>,
    /// By their index in the time line.
    shapes: Interned<u32>,
}

impl EventBuilder {
    /// Begins an event, in place of the one before.
    pub(super) fn begin(&mut self, kind: EventKind, track: u64) -> &mut Self {
        self.event.clear();
        if self.is_taken {
            self.new.clear();
        }
        self.is_taken = false;
        self.event.unsigned(event::KIND, kind as u64);
        self.event.unsigned(event::TRACK, track);
        self
    }

    /// Returns the event, and the texts that readers have to know before.
    pub(super) fn take(&mut self) -> (&Message, &Message) {
        self.is_taken = true;
        (&self.event, &self.new)
    }

    pub(super) fn category(&mut self, category: &'static str) -> &mut Self {
        let (number, is_new) = self.categories.number(category);
        if is_new {
            self.tell(interned::CATEGORIES, number, category);
        }
        self.event.unsigned(event::CATEGORY, number);
        self
    }

    /// Sets the name, and the whole name and the location as the place in the source.
    pub(super) fn name(&mut self, timeline: &Timeline, index: u32) -> &mut Self {
        let (number, is_new) = self.names.number(index);
        if is_new {
            self.tell_name(timeline, index, number);
        }
        self.event.unsigned(event::NAME_ID, number);
        self.event.unsigned(event::SOURCE_LOCATION, number);
        self
    }

    fn tell_name(&mut self, timeline: &Timeline, index: u32, number: u64) {
        let Some(name) = timeline.names.get(index as usize) else {
            self.tell(interned::EVENT_NAMES, number, "(unknown)");
            return;
        };
        let shown = if name.short.is_empty() {
            &name.text
        } else {
            &name.short
        };
        self.tell(interned::EVENT_NAMES, number, shown);
        let mut place = Message::default();
        place.unsigned(source_location::ID, number);
        let split = name.location.rsplit_once(':');
        let split = split.and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
        let (file, line) = split.unwrap_or((&name.location, 0));
        place.text(source_location::FILE, file);
        place.text(source_location::FUNCTION, &name.text);
        place.unsigned(source_location::LINE, u64::from(line));
        self.new.message(interned::SOURCE_LOCATIONS, &place);
    }

    /// Sets a name that no other event has.
    pub(super) fn single_name(&mut self, name: &str) -> &mut Self {
        self.event.text(event::NAME, name);
        self
    }

    /// Starts an arrow.
    pub(super) fn flow(&mut self, id: u64) -> &mut Self {
        self.event.fixed(event::FLOWS, id);
        self
    }

    /// Ends an arrow.
    pub(super) fn ending_flow(&mut self, id: u64) -> &mut Self {
        self.event.fixed(event::ENDING_FLOWS, id);
        self
    }

    /// Sets the value of a counter.
    pub(super) fn value(&mut self, value: f64) -> &mut Self {
        self.event.double(event::VALUE, value);
        self
    }

    pub(super) fn integer(&mut self, key: Key, value: i64) -> &mut Self {
        self.argument(key, |argument| argument.signed(annotation::INTEGER, value))
    }

    pub(super) fn number(&mut self, key: Key, value: f64) -> &mut Self {
        self.argument(key, |argument| argument.double(annotation::NUMBER, value))
    }

    pub(super) fn flag(&mut self, key: Key) -> &mut Self {
        self.argument(key, |argument| argument.unsigned(annotation::FLAG, 1))
    }

    pub(super) fn text(&mut self, key: Key, text: &str) -> &mut Self {
        self.argument(key, |argument| argument.text(annotation::TEXT, text))
    }

    /// Adds the text of shapes, by its index in the time line.
    pub(super) fn shapes(&mut self, key: Key, timeline: &Timeline, index: u32) -> &mut Self {
        let Some(text) = timeline.shapes.get(index as usize) else {
            return self;
        };
        let (number, is_new) = self.shapes.number(index);
        if is_new {
            self.tell(interned::ANNOTATION_TEXTS, number, text);
        }
        self.argument(key, |argument| {
            argument.unsigned(annotation::TEXT_ID, number);
        })
    }

    fn argument(&mut self, Key(key): Key, set: impl FnOnce(&mut Message)) -> &mut Self {
        let (number, is_new) = self.keys.number(key);
        if is_new {
            self.tell(interned::ANNOTATION_NAMES, number, key);
        }
        self.argument.clear();
        self.argument.unsigned(annotation::NAME_ID, number);
        set(&mut self.argument);
        self.event.message(event::ANNOTATIONS, &self.argument);
        self
    }

    /// Adds a text that the sequence does not know yet.
    fn tell(&mut self, field: u32, number: u64, text: &str) {
        let mut entry = Message::default();
        entry.unsigned(interned_text::ID, number);
        entry.text(interned_text::TEXT, text);
        self.new.message(field, &entry);
    }
}
