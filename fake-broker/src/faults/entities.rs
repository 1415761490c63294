//! What a request is about: its topics with their partitions, its groups, and the other things that a rule can name.

use krafka_protocol::{AnyRequest, Str, Uuid};

use super::place::{Meaning, Place};
use super::tree::{Node, Tree};
use crate::context::Context;
use crate::groups::share::{Holder, INITIAL_EPOCH};
use crate::state::State;

/// Everything that a request names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entities {
    pub(crate) topics: Vec<(Str, Vec<i32>)>,
    /// The ids that topics were named by, and their names if there are such topics.
    pub(crate) topic_ids: Vec<(Uuid, Option<Str>)>,
    pub(crate) groups: Vec<Str>,
    pub(crate) transactional_ids: Vec<Str>,
    pub(crate) resources: Vec<Str>,
}

impl Entities {
    /// Reads them out of a request.
    pub(crate) fn of(cx: &Context, request: &AnyRequest, state: &State) -> Self {
        let mut entities = Self::default();
        entities.collect(&Node::of(request.structure()), &Place::default(), &|id| state.topics.name_of(id));
        // A request within a session is also about what the session remembers.
        if let AnyRequest::Fetch(fetch) = request
            && fetch.session_epoch > 0
            && let Some(sessions) = state.sessions.get(&cx.node)
        {
            let remembered = sessions.partitions(fetch.session_id);
            entities.topics.extend(remembered.map(|(topic, index)| (topic.clone(), vec![index])));
        }
        if let AnyRequest::ShareFetch(fetch) = request
            && fetch.share_session_epoch > INITIAL_EPOCH
            && let (Some(group), Some(member)) = (&fetch.group_id, &fetch.member_id)
            && let Some(sessions) = state.share.sessions.get(&cx.node)
        {
            let remembered = sessions.partitions(&Holder { group: group.clone(), member: member.clone() });
            let named = remembered.iter().filter_map(|it| Some((state.topics.name_of(&it.topic)?, vec![it.partition])));
            entities.topics.extend(named);
        }
        entities
    }

    /// The group and the transactional id that a request as a whole is about, if there is just one.
    pub(crate) fn whole(&self) -> Place {
        let only = |names: &[Str]| if let [name] = names { Some(name.clone()) } else { None };
        Place { group: only(&self.groups), transactional_id: only(&self.transactional_ids), ..Place::default() }
    }

    /// The name of a topic that the request names by its id.
    pub(crate) fn name_of(&self, id: Uuid) -> Option<Str> {
        self.topic_ids.iter().find(|(known, _)| *known == id).and_then(|(_, name)| name.clone())
    }

    fn collect(&mut self, node: &Node, around: &Place, name_of: &dyn Fn(&Uuid) -> Option<Str>) {
        let here = around.within(node, name_of);
        if here.topic != around.topic
            && let Some(topic) = &here.topic
        {
            self.topics.push((topic.clone(), Vec::new()));
        }
        if here.topic_id != around.topic_id {
            self.topic_ids.extend(here.topic_id.map(|id| (id, name_of(&id))));
        }
        if here.partition != around.partition {
            self.partition(here.partition);
        }
        // Newer versions have a list in place of a single group, and leave that empty.
        let news = |new: &Option<Str>, old: &Option<Str>| new.clone().filter(|it| !it.is_empty() && new != old);
        self.groups.extend(news(&here.group, &around.group));
        self.transactional_ids.extend(news(&here.transactional_id, &around.transactional_id));
        self.resources.extend(news(&here.resource, &around.resource));
        for (field, value) in node.schema.fields.iter().zip(&node.fields) {
            match value {
                Tree::Struct(inner) => self.collect(inner, &here, name_of),
                Tree::Array(elements) => {
                    let meaning = Meaning::of(node.schema.name, field.name);
                    for element in elements {
                        self.element(element, meaning, node, &here, name_of);
                    }
                }
                _ => {}
            }
        }
    }

    fn element(
        &mut self,
        element: &Tree,
        meaning: Option<Meaning>,
        node: &Node,
        here: &Place,
        name_of: &dyn Fn(&Uuid) -> Option<Str>,
    ) {
        match (meaning, element) {
            (_, Tree::Struct(inner)) => self.collect(inner, here, name_of),
            (Some(Meaning::Partition), Tree::Int(index)) => self.partition(i32::try_from(*index).ok()),
            (Some(Meaning::Topic), Tree::Str(name)) => self.topics.push((name.clone(), Vec::new())),
            (Some(Meaning::Group), Tree::Str(group)) => self.groups.push(group.clone()),
            (Some(Meaning::TransactionalId), Tree::Str(id)) => self.transactional_ids.push(id.clone()),
            (Some(Meaning::CoordinatorKey), Tree::Str(key)) => {
                let mut place = Place::default();
                place.coordinator_key(node, key);
                self.groups.extend(place.group);
                self.transactional_ids.extend(place.transactional_id);
            }
            _ => {}
        }
    }

    /// Adds a partition to the topic that was named last.
    fn partition(&mut self, index: Option<i32>) {
        if let (Some((_, partitions)), Some(index)) = (self.topics.last_mut(), index) {
            partitions.push(index);
        }
    }
}
