// segmentio/kafka-go: the checks segment-*.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// A client that asks again soon for what it knows of the cluster: else it does for six seconds not see a new topic.
func segmentClient() *kafka.Client {
	transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
	return &kafka.Client{Addr: kafka.TCP(addresses()...), Timeout: 10 * time.Second, Transport: transport}
}

// In each codec, with keys, headers and tombstones; acks 0, 1 and all; a reader of one partition seeks by time.
func segmentProduce(ctx context.Context) error {
	sent := 0
	for _, acks := range []kafka.RequiredAcks{kafka.RequireAll, kafka.RequireOne, kafka.RequireNone} {
		for codec := kafka.Compression(0); codec <= kafka.Zstd; codec++ {
			writer := &kafka.Writer{Addr: kafka.TCP(addresses()...), Topic: topic, RequiredAcks: acks, Compression: codec,
				BatchTimeout: 5 * time.Millisecond}
			var messages []kafka.Message
			for j := range 20 {
				message := kafka.Message{Key: fmt.Append(nil, codec), Headers: []kafka.Header{{Key: "codec", Value: fmt.Append(nil, codec)}}}
				if j > 0 {
					message.Value = []byte(strings.Repeat("x", j))
				}
				messages = append(messages, message)
			}
			if err := errors.Join(writer.WriteMessages(ctx, messages...), writer.Close()); err != nil {
				return fmt.Errorf("acks %v, codec %v: %w", acks, codec, err)
			}
			sent += len(messages)
		}
	}
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: addresses(), Topic: topic, Partition: 0, MaxWait: 100 * time.Millisecond})
	defer reader.Close()
	for i := range sent {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return fmt.Errorf("%d of %d messages: %w", i, sent, err)
		}
		if string(message.Headers[0].Value) != string(message.Key) || message.Offset != int64(i) {
			return fmt.Errorf("offset %d with headers %v", message.Offset, message.Headers)
		}
	}
	if err := reader.SetOffsetAt(ctx, time.Now().Add(-time.Hour)); err != nil || reader.Offset() != 0 {
		return fmt.Errorf("an hour ago was offset %d: %v", reader.Offset(), err)
	}
	lag, err := reader.ReadLag(ctx)
	if err != nil || lag != int64(sent) {
		return fmt.Errorf("lag %d: %v", lag, err)
	}
	return nil
}

// Two members of a group, with each balancer: all messages come, one leaves, and what was committed is not read again.
func segmentGroup(ctx context.Context) error {
	writer := &kafka.Writer{Addr: kafka.TCP(addresses()...), Topic: topic, BatchTimeout: 5 * time.Millisecond, Balancer: &kafka.RoundRobin{}}
	defer writer.Close()
	for i, balancer := range []kafka.GroupBalancer{kafka.RangeGroupBalancer{}, kafka.RoundRobinGroupBalancer{}, kafka.RackAffinityGroupBalancer{Rack: "a"}} {
		name := fmt.Sprintf("%s-%d", group, i)
		member := func() *kafka.Reader {
			return kafka.NewReader(kafka.ReaderConfig{Brokers: addresses(), GroupID: name, GroupTopics: []string{topic},
				GroupBalancers: []kafka.GroupBalancer{balancer}, StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
				HeartbeatInterval: 200 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond,
				RebalanceTimeout: 5 * time.Second, SessionTimeout: 6 * time.Second})
		}
		take := func(count int, readers ...*kafka.Reader) (map[string]int, error) {
			seen, failed, taken := map[string]int{}, make(chan error), make(chan kafka.Message)
			reading, stop := context.WithCancel(ctx)
			defer stop()
			for _, reader := range readers {
				go func() {
					for {
						message, err := reader.FetchMessage(reading)
						if err == nil {
							err = reader.CommitMessages(reading, message)
						}
						if err != nil {
							select {
							case failed <- err:
							case <-reading.Done():
							}
							return
						}
						select {
						case taken <- message:
						case <-reading.Done():
						}
					}
				}()
			}
			for len(seen) < count {
				select {
				case message := <-taken:
					seen[fmt.Sprint(message.Partition, "-", message.Offset)]++
				case err := <-failed:
					return seen, fmt.Errorf("%s: %d of %d messages: %w", name, len(seen), count, err)
				}
			}
			return seen, nil
		}
		var messages []kafka.Message
		for j := range 12 {
			messages = append(messages, kafka.Message{Value: fmt.Append(nil, j)})
		}
		if err := writer.WriteMessages(ctx, messages...); err != nil {
			return err
		}
		first, second := member(), member()
		if _, err := take(12*(2*i+1), first, second); err != nil {
			return err
		}
		client := segmentClient()
		described, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{name}})
		if err != nil {
			return err
		}
		if g := described.Groups[0]; len(g.Members) != 2 || g.Error != nil {
			return fmt.Errorf("%s is %s with %d members: %v", name, g.GroupState, len(g.Members), g.Error)
		}
		second.Close()
		if err := writer.WriteMessages(ctx, messages...); err != nil {
			return err
		}
		again, err := take(12, first)
		if err != nil {
			return err
		}
		for at := range again {
			var partition, offset int
			fmt.Sscanf(at, "%d-%d", &partition, &offset)
			if offset < 3*(2*i+1) {
				return fmt.Errorf("%s: %s was read again", name, at)
			}
		}
		first.Close()
		offsets, err := client.ConsumerOffsets(ctx, kafka.TopicAndGroup{Topic: topic, GroupId: name})
		if err != nil {
			return err
		}
		said("%s committed %v", balancer.ProtocolName(), offsets)
	}
	return nil
}

// The coordinator, which is not there until its topic is made.
func segmentCoordinator(ctx context.Context, client *kafka.Client, key string, kind kafka.CoordinatorKeyType) (found *kafka.FindCoordinatorResponse, err error) {
	for range 200 {
		found, err = client.FindCoordinator(ctx, &kafka.FindCoordinatorRequest{Key: key, KeyType: kind})
		if err == nil && found.Error == nil {
			return found, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err == nil {
		err = found.Error
	}
	return nil, fmt.Errorf("coordinator of %s: %w", key, err)
}

// Asks for a producer id until no transaction is being ended.
func segmentInit(ctx context.Context, client *kafka.Client, request *kafka.InitProducerIDRequest) (made *kafka.InitProducerIDResponse, err error) {
	for range 100 {
		made, err = client.InitProducerID(ctx, request)
		if err != nil || !errors.Is(made.Error, kafka.ConcurrentTransactions) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return made, err
}

// One committed and one aborted transaction, said with kafka-go's requests, and what a reader of committed ones sees.
func segmentTransactions(ctx context.Context) error {
	client, id := segmentClient(), group+"-txn"
	found, err := segmentCoordinator(ctx, client, id, kafka.CoordinatorKeyTypeTransaction)
	if err != nil {
		return err
	}
	at := kafka.TCP(net.JoinHostPort(found.Coordinator.Host, fmt.Sprint(found.Coordinator.Port)))
	for i, isCommitted := range []bool{true, false} {
		made, err := segmentInit(ctx, client, &kafka.InitProducerIDRequest{Addr: at, TransactionalID: id, TransactionTimeoutMs: 10_000,
			ProducerID: -1, ProducerEpoch: -1})
		if err != nil || made.Error != nil {
			return fmt.Errorf("producer id: %w", errors.Join(err, made.Error))
		}
		session := made.Producer
		said("epoch %d", session.ProducerEpoch)
		added, err := client.AddPartitionsToTxn(ctx, &kafka.AddPartitionsToTxnRequest{Addr: at, TransactionalID: id, ProducerID: session.ProducerID,
			ProducerEpoch: session.ProducerEpoch, Topics: map[string][]kafka.AddPartitionToTxn{topic: {{Partition: 0}, {Partition: 99}}}})
		if err != nil {
			return err
		}
		slices.SortFunc(added.Topics[topic], func(a, b kafka.AddPartitionToTxnPartition) int { return a.Partition - b.Partition })
		for _, p := range added.Topics[topic] {
			said("  partition %d is added: %v", p.Partition, p.Error)
		}
		added, err = client.AddPartitionsToTxn(ctx, &kafka.AddPartitionsToTxnRequest{Addr: at, TransactionalID: id, ProducerID: session.ProducerID,
			ProducerEpoch: session.ProducerEpoch, Topics: map[string][]kafka.AddPartitionToTxn{topic: {{Partition: 0}}}})
		if err != nil || added.Topics[topic][0].Error != nil {
			return fmt.Errorf("add: %w", errors.Join(err, added.Topics[topic][0].Error))
		}
		offsets, err := client.AddOffsetsToTxn(ctx, &kafka.AddOffsetsToTxnRequest{Addr: at, TransactionalID: id, ProducerID: session.ProducerID,
			ProducerEpoch: session.ProducerEpoch, GroupID: group})
		if err != nil || offsets.Error != nil {
			return fmt.Errorf("add offsets: %w", errors.Join(err, offsets.Error))
		}
		commit := &kafka.TxnOffsetCommitRequest{TransactionalID: id, GroupID: group, ProducerID: session.ProducerID,
			ProducerEpoch: session.ProducerEpoch, GenerationID: -1, Topics: map[string][]kafka.TxnOffsetCommit{topic: {{Partition: 0, Offset: int64(7 + i)}}}}
		coordinator, err := segmentCoordinator(ctx, client, group, kafka.CoordinatorKeyTypeConsumer)
		if err != nil {
			return err
		}
		commit.Addr = kafka.TCP(net.JoinHostPort(coordinator.Coordinator.Host, fmt.Sprint(coordinator.Coordinator.Port)))
		committed, err := client.TxnOffsetCommit(ctx, commit)
		if err != nil {
			return fmt.Errorf("commit offsets: %w", err)
		}
		said("  offsets: %v", committed.Topics[topic][0].Error)
		ended, err := client.EndTxn(ctx, &kafka.EndTxnRequest{Addr: at, TransactionalID: id, ProducerID: session.ProducerID,
			ProducerEpoch: session.ProducerEpoch, Committed: isCommitted})
		if err != nil || ended.Error != nil {
			return fmt.Errorf("end: %w", errors.Join(err, ended.Error))
		}
		late, err := client.EndTxn(ctx, &kafka.EndTxnRequest{Addr: at, TransactionalID: id, ProducerID: session.ProducerID,
			ProducerEpoch: session.ProducerEpoch + 5, Committed: isCommitted})
		said("  end of a later epoch: %v %v", err, late.Error)
	}
	// kafka-go's own default names producer 0.
	other, err := segmentInit(ctx, client, &kafka.InitProducerIDRequest{Addr: at, TransactionalID: id, TransactionTimeoutMs: 10_000})
	said("as another producer: %v %v", err, other.Error)
	var offsets map[int]int64
	for range 100 {
		offsets, err = client.ConsumerOffsets(ctx, kafka.TopicAndGroup{Topic: topic, GroupId: group})
		if err != nil || offsets[0] == 7 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	said("committed: %v %v", offsets, err)
	return nil
}

// What kafka-go's Client is told by each request that it knows.
func segmentAdmin(ctx context.Context) error {
	client, name := segmentClient(), topic+"-made"
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: name, NumPartitions: 2, ReplicationFactor: 1, ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "1000000"}}},
		{Topic: name + "-many", NumPartitions: 1, ReplicationFactor: 9},
		{Topic: name + "-wrong", NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: []kafka.ConfigEntry{{ConfigName: "no.such", ConfigValue: "1"}}},
		{Topic: "a/b", NumPartitions: 1, ReplicationFactor: 1},
	}})
	if err != nil {
		return err
	}
	for _, suffix := range []string{"", "-many", "-wrong"} {
		said("create T%s: %v", suffix, created.Errors[name+suffix])
	}
	said("create a/b: %v", created.Errors["a/b"])
	settled := func(partitions int) error {
		for range 200 {
			metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name}})
			if err != nil {
				return err
			}
			if len(metadata.Topics) == 1 && len(metadata.Topics[0].Partitions) == partitions {
				return nil
			}
			time.Sleep(20 * time.Millisecond)
		}
		return errors.New("the topic does not settle")
	}
	if err := settled(2); err != nil {
		return err
	}
	more, err := client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: 3}}})
	if err != nil {
		return err
	}
	said("partitions: %v", more.Errors[name])
	if err := settled(3); err != nil {
		return err
	}
	more, err = client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: 3}}})
	said("as many partitions: %v %v", err, more.Errors[name])
	offsets, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{name: {
		kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0), kafka.TimeOffsetOf(1, time.Now()), kafka.LastOffsetOf(7)}}})
	said("offsets: %v", err)
	if err == nil {
		for _, p := range []int{0, 1, 7} {
			for _, at := range offsets.Topics[name] {
				if at.Partition == p {
					said("  %d: %d to %d, %d times: %v", p, at.FirstOffset, at.LastOffset, len(at.Offsets), at.Error)
				}
			}
		}
	}
	configs, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{IncludeSynonyms: true, IncludeDocumentation: true, Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: name, ConfigNames: []string{"retention.ms", "cleanup.policy", "no.such"}},
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: name + "-none"}}})
	said("configs: %v", err)
	if err == nil {
		for _, resource := range configs.Resources {
			said("  %s: %v", strings.ReplaceAll(resource.ResourceName, name, "T"), resource.Error)
			for _, e := range resource.ConfigEntries {
				said("    %s=%s source %d, type %d, %d synonyms, %d characters of documentation", e.ConfigName, e.ConfigValue, e.ConfigSource, e.ConfigType, len(e.ConfigSynonyms), len(e.ConfigDocumentation))
			}
		}
	}
	altered, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: name, Configs: []kafka.IncrementalAlterConfigsRequestConfig{
			{Name: "cleanup.policy", Value: "compact", ConfigOperation: kafka.ConfigOperationAppend}}}}})
	said("append: %v", errors.Join(err, altered.Resources[0].Error))
	set, err := client.AlterConfigs(ctx, &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: name, Configs: []kafka.AlterConfigRequestConfig{{Name: "max.message.bytes", Value: "-5"}}}}})
	said("set: %v", err)
	if err == nil {
		for _, e := range set.Errors {
			said("  %v", e)
		}
	}
	elected, err := client.ElectLeaders(ctx, &kafka.ElectLeadersRequest{Topic: name, Partitions: []int{0, 9}, Timeout: 5 * time.Second})
	said("elect: %v", err)
	if err == nil {
		said("  %v", elected.Error)
		slices.SortFunc(elected.PartitionResults, func(a, b kafka.ElectLeadersResponsePartitionResult) int { return a.Partition - b.Partition })
		for _, p := range elected.PartitionResults {
			said("  %d: %v", p.Partition, p.Error)
		}
	}
	moved, err := client.AlterPartitionReassignments(ctx, &kafka.AlterPartitionReassignmentsRequest{Topic: name, Timeout: 5 * time.Second,
		Assignments: []kafka.AlterPartitionReassignmentsRequestAssignment{{PartitionID: 0, BrokerIDs: []int{77}}}})
	said("reassign: %v", err)
	if err == nil {
		said("  %v", moved.Error)
		for _, p := range moved.PartitionResults {
			said("  %d: %v", p.PartitionID, p.Error)
		}
	}
	groups := func(what string) {
		described, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
		said("%s: %v", what, err)
		if err == nil {
			g := described.Groups[0]
			said("  %v, %q, %d members", g.Error, g.GroupState, len(g.Members))
		}
	}
	if _, err := segmentCoordinator(ctx, client, group, kafka.CoordinatorKeyTypeConsumer); err != nil {
		return err
	}
	groups("describe a group that nobody made")
	kept, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{
		name: {{Partition: 0, Offset: 5, Metadata: "five"}, {Partition: 9, Offset: 5}}}})
	said("commit: %v", err)
	if err == nil {
		for _, p := range kept.Topics[name] {
			said("  %d: %v", p.Partition, p.Error)
		}
	}
	groups("describe a group of offsets alone")
	fetched, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{name: {0, 1, 9}}})
	said("committed: %v", err)
	if err == nil {
		for _, p := range fetched.Topics[name] {
			said("  %d: %d %q %v", p.Partition, p.CommittedOffset, p.Metadata, p.Error)
		}
	}
	join, err := client.JoinGroup(ctx, &kafka.JoinGroupRequest{GroupID: group, SessionTimeout: time.Millisecond, RebalanceTimeout: time.Second, ProtocolType: "consumer",
		Protocols: []kafka.GroupProtocol{{Name: "range", Metadata: kafka.GroupProtocolSubscription{Topics: []string{name}}}}})
	said("join with a short session: %v", err)
	if err == nil {
		said("  %v", join.Error)
	}
	beat, err := client.Heartbeat(ctx, &kafka.HeartbeatRequest{GroupID: group, GenerationID: 3, MemberID: "nobody"})
	said("heartbeat of nobody: %v", err)
	if err == nil {
		said("  %v", beat.Error)
	}
	left, err := client.LeaveGroup(ctx, &kafka.LeaveGroupRequest{GroupID: group, Members: []kafka.LeaveGroupRequestMember{{ID: "nobody"}}})
	said("leave of nobody: %v", err)
	if err == nil {
		said("  %v", left.Error)
		for _, m := range left.Members {
			said("  %v", m.Error)
		}
	}
	gone, err := client.OffsetDelete(ctx, &kafka.OffsetDeleteRequest{GroupID: group, Topics: map[string][]int{name: {0}}})
	said("delete an offset: %v", err)
	if err == nil {
		said("  %v", gone.Error)
		for _, p := range gone.Topics[name] {
			said("  %d: %v", p.Partition, p.Error)
		}
	}
	ended, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	said("delete groups: %v", err)
	if err == nil {
		said("  %v", ended.Errors[group])
	}
	deleted, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{name, name + "-none"}})
	said("delete: %v", err)
	if err == nil {
		said("  %v, %v", deleted.Errors[name], deleted.Errors[name+"-none"])
	}
	return nil
}

// PLAIN and SCRAM on a SASL listener: a right password works, a wrong one is refused.
func segmentSasl(ctx context.Context) error {
	user, password, _ := strings.Cut(os.Getenv("SASL_USER"), ":")
	for _, isRight := range []bool{true, false} {
		given := password
		if !isRight {
			given = "wrong"
		}
		sha256, err := scram.Mechanism(scram.SHA256, user, given)
		if err != nil {
			return err
		}
		sha512, err := scram.Mechanism(scram.SHA512, user, given)
		if err != nil {
			return err
		}
		for _, mechanism := range []sasl.Mechanism{plain.Mechanism{Username: user, Password: given}, sha256, sha512} {
			dialer := &kafka.Dialer{Timeout: 5 * time.Second, SASLMechanism: mechanism}
			conn, err := dialer.DialContext(ctx, "tcp", addresses()[0])
			said("%s with the right password %v: %v", mechanism.Name(), isRight, err)
			if err != nil {
				continue
			}
			brokers, err := conn.Brokers()
			said("  %d brokers: %v", len(brokers), err)
			conn.Close()
		}
	}
	return nil
}
