//! Which parts of a source are not read, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::SourceConsumer;
use crate::app::setup::part;
use crate::kafka::{KafkaError, Partition};

/// A broker counts as away after this long without an answer: longer than partitions take to change
/// leaders.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(30);

impl SourceConsumer {
    /// Parts of the source that are not read or that verdicts leave out, each with the reason.
    pub fn unread(&self) -> impl Iterator<Item = (String, String)> {
        let all = self.hidden().chain(self.away());
        let all = all.chain(self.thrown_out()).chain(self.awaits_schemas());
        all.chain(self.denied()).chain(self.missing())
    }

    /// Topics with assigned partitions that this user may not read, each with the reason.
    fn denied(&self) -> impl Iterator<Item = (String, String)> {
        let topics = self.consumer.denied().map(|p| p.topic);
        let topics: BTreeSet<u16> = topics.collect();
        let topic = |number| self.source.records.topic(number);
        topics.into_iter().map(move |number| {
            let why = "this user may not read it, and no verdict passes what it may hold; grant READ on it";
            (format!("kafka {}", topic(number)), why.to_owned())
        })
    }

    /// Topics that are not read because they have no partitions, each with the reason. Before the
    /// group has accepted the member, the source as a whole is not ready.
    fn missing(&self) -> impl Iterator<Item = (String, String)> {
        let all = self.consumer.missing().filter(|_| self.ready);
        all.map(|topic| {
            let error = KafkaError::Topic {
                topic: topic.to_owned(),
                detail: "it does not exist, or this user lacks the right READ on it".to_owned(),
                key: "topics",
            };
            (format!("kafka {topic}"), error.to_string())
        })
    }

    /// The partitions that are not read because their broker has not answered for a while.
    pub fn unreachable(&self) -> Vec<Partition> {
        if self
            .consumer
            .cut_off()
            .is_some_and(|time| time >= UNREACHABLE_AFTER)
        {
            return self.consumer.assignment();
        }
        let leaders = self.consumer.leaderless();
        let leaders = leaders.filter(|(_, time)| *time >= UNREACHABLE_AFTER);
        leaders.map(|(partition, _)| partition).collect()
    }

    /// Parts that are not read because brokers have not answered for a while, each with the reason:
    /// all topics, or those with a partition whose leader does not answer.
    fn away(&self) -> Vec<(String, String)> {
        if self.fenced {
            return Vec::new();
        }
        if let Some(time) = self
            .consumer
            .cut_off()
            .filter(|time| *time >= UNREACHABLE_AFTER)
        {
            let topics = self.options.kafka.topics.join(",");
            let why = format!(
                "no broker has answered for {} s, and nothing is read; check the brokers, the network and the \
                 credentials",
                time.as_secs()
            );
            return vec![(format!("brokers of {topics}"), why)];
        }
        let leaders = self.consumer.leaderless();
        let leaders = leaders.filter(|(_, time)| *time >= UNREACHABLE_AFTER);
        let assigned = self.consumer.assignment();
        leaderless(leaders, &assigned, |number| {
            self.source.records.topic(number)
        })
    }

    /// The part and the reason, if nothing is read because records have waited for their schema for
    /// a while.
    fn awaits_schemas(&self) -> Option<(String, String)> {
        let time = self.schemas_behind?.elapsed();
        let topics = self.options.kafka.topics.join(",");
        let why = format!(
            "records that wait for their schema have filled the queue for {} s, and nothing is read until it is \
             empty; check the schema registry",
            time.as_secs()
        );
        (time >= UNREACHABLE_AFTER).then(|| (format!("schemas of {topics}"), why))
    }

    /// Partitions that verdicts leave out because a transaction hides their records, each with the
    /// reason.
    fn hidden(&self) -> impl Iterator<Item = (String, String)> {
        let hidden = self.consumer.hidden().filter(|(_, h)| h.reported);
        hidden.map(|(p, h)| {
            let topic = self.source.records.topic(p.topic);
            let why = format!(
                "a transaction that began at offset {} has been open for {} s and hides what follows; verdicts go \
                 on without it. End the transaction at its producer, or with kafka-transactions.sh",
                h.offset,
                h.since.elapsed().as_secs()
            );
            (format!("partition {topic}/{}", p.partition), why)
        })
    }

    /// The part and the reason, if the group has removed this process for a while. `None` while
    /// brokers are away or the `instance` is taken, as that is reported already.
    fn thrown_out(&self) -> Option<(String, String)> {
        let cut_off = self
            .consumer
            .cut_off()
            .is_some_and(|time| time >= UNREACHABLE_AFTER);
        let lost = self.source.lost_since.map(|since| since.elapsed());
        let time = lost.filter(|_| self.ready && !self.fenced && !cut_off)?;
        let trouble = self.trouble.as_deref();
        let why = format!(
            "the group took all partitions away {} s ago and has given none since: {}",
            time.as_secs(),
            trouble.unwrap_or("it does not answer the request to join")
        );
        (time >= UNREACHABLE_AFTER).then(|| (part(&self.options), why))
    }
}

/// The topics with partitions whose leader does not answer, each with the reason.
fn leaderless<'a>(
    leaders: impl Iterator<Item = (Partition, Duration)>,
    assigned: &[Partition],
    topic: impl Fn(u16) -> &'a str,
) -> Vec<(String, String)> {
    let mut topics: BTreeMap<u16, Vec<(Duration, i32)>> = BTreeMap::new();
    for (p, time) in leaders {
        topics.entry(p.topic).or_default().push((time, p.partition));
    }
    let of = |(number, leaders): (u16, Vec<(Duration, i32)>)| {
        let (time, first) = leaders.iter().max()?;
        let topic = topic(number);
        let why = format!(
            "{} of {} partitions have no leader that answers, {topic}/{first} for {} s, and nothing of them is read; \
             check the brokers, and that the topic exists",
            leaders.len(),
            assigned.iter().filter(|p| p.topic == number).count(),
            time.as_secs()
        );
        Some((format!("brokers of {topic}"), why))
    };
    topics.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::cluster::topology::Topology;
    use crate::app::events::{EventLogs, LogBrokers};
    use crate::app::ingest::consumer::Hold;
    use crate::app::ingest::contest::{Claim, Contest};
    use crate::app::ingest::kafka_config;
    use crate::app::pool::Pool;
    use crate::kafka::{Librdkafka, Peer};
    use crate::monitor::{Engine, PartitionEvent};
    use crate::store::event_log::{EventLog, LogLimits};
    use crate::telemetry::Published;
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
    use std::sync::Arc;
    use std::time::Instant;

    const CONFIG: &str = r#"
[[source]]
topics = ["clicks"]
fields = { score = "score" }
[[model]]
name = "*"
windows = ["1m"]
"#;

    const LIMITS: LogLimits = LogLimits {
        bytes_max: 1 << 20,
        keep_ms: 1 << 40,
    };

    #[test]
    fn what_keeps_a_source_from_being_read_is_named_after_a_while() {
        let folder = tempfile::TempDir::with_prefix("trueline-unread-").expect("a folder");
        let log = EventLog::open(folder.path(), LIMITS).expect("it opens");
        let logs = EventLogs::from([("clicks".to_owned(), Arc::new(log))]);
        let config = kafka_config(CONFIG);
        let (source, brokers) = (config.sources[0].clone(), Arc::new(LogBrokers(logs)));
        let consumer = SourceConsumer::new(source, 0, None, brokers, &Pool::default());
        let mut consumer = consumer.expect("a consumer");
        let mut topology = Topology::Single(Box::new(Engine::new(config.plan)));
        let published = Published::default();
        let ready = |p: &Published| !p.missing().contains_key("kafka clicks");
        let said = |c: &SourceConsumer| c.unread().collect::<Vec<_>>();
        let long = || Instant::now().checked_sub(UNREACHABLE_AFTER);

        // The topic once had a second partition: nothing waits for it.
        topology.on_partition((0, 1).into(), PartitionEvent::Rewound(5));
        assert_eq!(topology.positions().len(), 1);
        published.not_ready("kafka clicks", "joining");
        consumer.poll(&mut topology, Duration::ZERO);
        assert!(consumer.publish_readiness(&mut topology, &published));
        assert!(ready(&published));
        assert_eq!(said(&consumer), []);
        // It was released already. Two answers are needed, as a broker may lag.
        let partition = (0, 1).into();
        consumer.source.unassigned.insert(partition, Hold::Over);
        let begun = Instant::now();
        while !consumer.source.gone.contains(&partition) {
            assert!(begun.elapsed() < UNREACHABLE_AFTER, "it is never gone");
            consumer.poll(&mut topology, Duration::from_millis(10));
            consumer.publish_readiness(&mut topology, &published);
        }

        // The group revokes its partitions.
        consumer.source.lose();
        published.not_ready("kafka clicks", "lost");
        consumer.source.assignment_changed = true;
        consumer.publish_readiness(&mut topology, &published);
        assert!(!ready(&published));
        assert_eq!(said(&consumer), [], "it may come back at once");
        // No other process counts unless the group names one or assigns partitions again.
        let stranger = Peer {
            host: None,
            start: None,
        };
        for (others, known) in [(vec![stranger], 1), (Vec::new(), 0)] {
            let contest = consumer
                .contest
                .get_or_insert_with(|| Contest::new(Claim::Group, UNREACHABLE_AFTER));
            contest.others = others;
            assert_eq!(consumer.other_members(), known);
        }
        consumer.source.lost_since = long();
        let refused = KafkaError::Other("another assignor".to_owned());
        consumer.source.last_error = Some(refused);
        for _ in 0..2 {
            consumer.publish_readiness(&mut topology, &published);
            let [(part, why)] = &said(&consumer)[..] else {
                panic!("one part");
            };
            assert_eq!(part, "kafka clicks");
            assert!(why.contains("took all partitions away 30 s ago"), "{why}");
            assert!(why.ends_with("another assignor"), "{why}");
        }
        // The consumer has joined again.
        consumer.source.lost_since = None;
        consumer.source.assignment_changed = true;
        consumer.publish_readiness(&mut topology, &published);
        assert!(ready(&published));
        assert_eq!(consumer.other_members(), 1);
        assert_eq!((said(&consumer), consumer.trouble.take()), (vec![], None));

        consumer.schemas_behind = Some(Instant::now());
        assert_eq!(said(&consumer), []);
        consumer.schemas_behind = long();
        let [(part, why)] = &said(&consumer)[..] else {
            panic!("one part");
        };
        assert_eq!(part, "schemas of clicks");
        assert!(why.contains("for 30 s"), "{why}");
    }

    #[test]
    fn notifications_wait_for_a_topic_that_this_user_may_not_read() {
        let mock = MockCluster::new(1).expect("a broker");
        mock.create_topic("clicks", 1, 1).expect("a topic");
        let mut config = kafka_config(CONFIG);
        config.sources[0].kafka.brokers = mock.bootstrap_servers();
        let denied = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
        mock.request_errors(RDKafkaApiKey::Fetch, &[denied; 50]);
        let (source, brokers) = (config.sources[0].clone(), Arc::new(Librdkafka));
        let consumer = SourceConsumer::new(source, 0, None, brokers, &Pool::default());
        let mut consumer = consumer.expect("a consumer");
        let mut topology = Topology::Single(Box::new(Engine::new(config.plan)));
        let begun = Instant::now();
        while consumer.denied().next().is_none() {
            assert!(begun.elapsed() < UNREACHABLE_AFTER, "it is never denied");
            consumer.poll(&mut topology, Duration::from_millis(10));
        }
        assert_eq!(consumer.unreachable(), []);
    }

    #[test]
    fn a_topic_is_named_only_if_a_leader_of_its_own_does_not_answer() {
        let p = |topic, partition| Partition::from((topic, partition));
        let names = ["clicks", "labels", "orders"];
        let assigned = [p(0, 0), p(0, 1), p(1, 0), p(2, 0), p(2, 1), p(2, 2)];
        let leaders = [(p(0, 1), 40), (p(2, 2), 31), (p(2, 0), 50)];
        let leaders = leaders.map(|(p, s)| (p, Duration::from_secs(s)));
        let all = leaderless(leaders.into_iter(), &assigned, |n| names[usize::from(n)]);
        let parts: Vec<&str> = all.iter().map(|(part, _)| part.as_str()).collect();
        assert_eq!(parts, ["brokers of clicks", "brokers of orders"]);
        assert!(all[0].1.starts_with("1 of 2 partitions"), "{all:?}");
        assert!(all[0].1.contains("clicks/1 for 40 s"), "{all:?}");
        assert!(all[1].1.starts_with("2 of 3 partitions"), "{all:?}");
        assert!(all[1].1.contains("orders/0 for 50 s"), "{all:?}");
    }
}
