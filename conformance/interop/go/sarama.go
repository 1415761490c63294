// Sarama: the checks sarama-*.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// Versions of Kafka that Sarama is told to speak like: its default, an old one, and its newest.
var saramaVersions = []sarama.KafkaVersion{sarama.DefaultVersion, sarama.V1_0_0_0, sarama.MaxVersion}

func saramaConfig(version sarama.KafkaVersion) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = version
	config.ClientID = "interop-sarama"
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func addresses() []string { return strings.Split(bootstrap, ",") }

// In each codec that a version knows, with keys, headers and tombstones, idempotent where it can be; acks 0, 1 and all.
func saramaProduce(ctx context.Context) error {
	sent := 0
	for _, version := range saramaVersions {
		for codec := sarama.CompressionNone; codec <= sarama.CompressionZSTD; codec++ {
			if codec == sarama.CompressionZSTD && !version.IsAtLeast(sarama.V2_1_0_0) {
				continue
			}
			config := saramaConfig(version)
			config.Producer.Compression, config.Producer.Idempotent = codec, true
			config.Net.MaxOpenRequests = 1
			for j := range 20 {
				message := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprint(codec)),
					Headers: []sarama.RecordHeader{{Key: []byte("codec"), Value: fmt.Append(nil, codec)}}}
				if j > 0 {
					message.Value = sarama.StringEncoder(strings.Repeat("x", j))
				}
				if err := saramaSend(config, message, j == 19); err != nil {
					return fmt.Errorf("as %v, codec %v: %w", version, codec, err)
				}
				sent++
			}
		}
	}
	for _, acks := range []sarama.RequiredAcks{sarama.WaitForLocal, sarama.NoResponse} {
		config := saramaConfig(sarama.DefaultVersion)
		config.Producer.RequiredAcks = acks
		if err := saramaSend(config, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("acks")}, true); err != nil {
			return fmt.Errorf("acks %v: %w", acks, err)
		}
		sent++
	}
	for _, version := range saramaVersions {
		got, err := saramaRead(ctx, version, sarama.ReadUncommitted, sent)
		if err != nil {
			return fmt.Errorf("as %v: %w", version, err)
		}
		for _, m := range got {
			if len(m.Headers) == 1 && string(m.Headers[0].Value) != string(m.Key) {
				return fmt.Errorf("headers %v of key %s", m.Headers, m.Key)
			}
		}
	}
	return nil
}

var saramaOpen sarama.SyncProducer

// Sends with a producer that is kept until the last of its messages.
func saramaSend(config *sarama.Config, message *sarama.ProducerMessage, isLast bool) error {
	if saramaOpen == nil {
		opened, err := sarama.NewSyncProducer(addresses(), config)
		if err != nil {
			return err
		}
		saramaOpen = opened
	}
	_, _, err := saramaOpen.SendMessage(message)
	if isLast || err != nil {
		err = errors.Join(err, saramaOpen.Close())
		saramaOpen = nil
	}
	return err
}

// Reads this many messages of partition 0, and sees that no more come at once.
func saramaRead(ctx context.Context, version sarama.KafkaVersion, level sarama.IsolationLevel, count int) (got []*sarama.ConsumerMessage, err error) {
	config := saramaConfig(version)
	config.Consumer.IsolationLevel = level
	consumer, err := sarama.NewConsumer(addresses(), config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	for len(got) < count {
		select {
		case m := <-partition.Messages():
			got = append(got, m)
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d messages", len(got), count)
		}
	}
	select {
	case <-partition.Messages():
		return nil, fmt.Errorf("more than %d messages", count)
	case <-time.After(300 * time.Millisecond):
		return got, nil
	}
}

// What a member of a group does: it counts its partitions and messages, and commits.
type saramaMember struct {
	sarama.ConsumerGroup
	mutex  sync.Mutex
	claims int
	seen   int
}

func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.claims = len(session.Claims()[topic])
	return nil
}

func (m *saramaMember) Cleanup(session sarama.ConsumerGroupSession) error {
	session.Commit()
	return nil
}

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "mark")
		session.Commit()
		m.mutex.Lock()
		m.seen++
		m.mutex.Unlock()
	}
	return nil
}

func (m *saramaMember) counts() (claims, seen int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.claims, m.seen
}

// Two members share the partitions; one leaves, and the other goes on from what was committed. With each balancer, one
// of the members static.
func saramaGroup(ctx context.Context) error {
	balancers := []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange(), sarama.NewBalanceStrategySticky(),
		sarama.NewBalanceStrategyRoundRobin()}
	producing := saramaConfig(sarama.MaxVersion)
	producing.Producer.Partitioner = sarama.NewManualPartitioner
	for i, balancer := range balancers {
		name := fmt.Sprintf("%s-%d", group, i)
		var members []*saramaMember
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for j := range 2 {
			config := saramaConfig(saramaVersions[i])
			config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{balancer}
			if j == 1 && config.Version.IsAtLeast(sarama.V2_3_0_0) {
				config.Consumer.Group.InstanceId = "static"
			}
			joined, err := sarama.NewConsumerGroup(addresses(), name, config)
			if err != nil {
				return err
			}
			member := &saramaMember{ConsumerGroup: joined}
			members = append(members, member)
			go func() {
				for ctx.Err() == nil && member.Consume(ctx, []string{topic}, member) == nil {
				}
			}()
		}
		wait := func(what string, holds func() bool) error {
			for !holds() {
				if ctx.Err() != nil {
					a, b := members[0].counts()
					c, d := members[1].counts()
					return fmt.Errorf("%s, %s: claims %d and %d, seen %d and %d", balancer.Name(), what, a, c, b, d)
				}
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		}
		err := wait("sharing", func() bool {
			a, _ := members[0].counts()
			b, _ := members[1].counts()
			return a == 2 && b == 2
		})
		if err != nil {
			return err
		}
		for partition := range int32(4) {
			if err := saramaSend(producing, &sarama.ProducerMessage{Topic: topic, Partition: partition, Value: sarama.StringEncoder("1")}, partition == 3); err != nil {
				return err
			}
		}
		// The members of later rounds are of groups of their own, and read what is there from the beginning.
		err = wait("reading", func() bool {
			_, a := members[0].counts()
			_, b := members[1].counts()
			return a+b == 4*(i+1)
		})
		if err != nil {
			return err
		}
		admin, err := sarama.NewClusterAdmin(addresses(), saramaConfig(sarama.MaxVersion))
		if err != nil {
			return err
		}
		defer admin.Close()
		described, err := admin.DescribeConsumerGroups([]string{name})
		if err != nil {
			return err
		}
		if described[0].State != "Stable" || len(described[0].Members) != 2 {
			return fmt.Errorf("%s with %d members", described[0].State, len(described[0].Members))
		}
		// A static member that closes stays until it is removed.
		members[1].Close()
		if saramaVersions[i].IsAtLeast(sarama.V2_3_0_0) {
			if _, err := admin.RemoveMemberFromConsumerGroup(name, []string{"static"}); err != nil {
				return err
			}
		}
		err = wait("alone", func() bool {
			a, _ := members[0].counts()
			return a == 4
		})
		if err != nil {
			return err
		}
		offsets, err := admin.ListConsumerGroupOffsets(name, map[string][]int32{topic: {0, 1, 2, 3}})
		if err != nil {
			return err
		}
		for partition := range int32(4) {
			if at := offsets.GetBlock(topic, partition); at.Offset != int64(i+1) || at.Metadata != "mark" {
				return fmt.Errorf("partition %d is committed at %d with %q", partition, at.Offset, at.Metadata)
			}
		}
		cancel()
		members[0].Close()
	}
	return nil
}

// Committed and aborted ones with offsets, and what readers of either kind see; an older producer is fenced.
func saramaTransactions(ctx context.Context) error {
	open := func(version sarama.KafkaVersion) (sarama.SyncProducer, error) {
		config := saramaConfig(version)
		config.Producer.Idempotent, config.Producer.Transaction.ID = true, group+"-txn"
		config.Net.MaxOpenRequests = 1
		config.Producer.Transaction.Retry.Backoff = 50 * time.Millisecond
		return sarama.NewSyncProducer(addresses(), config)
	}
	older, err := open(sarama.DefaultVersion)
	if err != nil {
		return err
	}
	offsets := func(at int64) map[string][]*sarama.PartitionOffsetMetadata {
		return map[string][]*sarama.PartitionOffsetMetadata{topic: {{Partition: 0, Offset: at}}}
	}
	for i, isCommitted := range []bool{true, false, true} {
		if err := older.BeginTxn(); err != nil {
			return err
		}
		for range 10 {
			if _, _, err := older.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint(isCommitted))}); err != nil {
				return err
			}
		}
		if err := older.AddOffsetsToTxn(offsets(int64(100+i)), group); err != nil {
			return fmt.Errorf("offsets: %w", err)
		}
		end := older.CommitTxn
		if !isCommitted {
			end = older.AbortTxn
		}
		if err := end(); err != nil {
			return fmt.Errorf("end %v: %w", isCommitted, err)
		}
	}
	if _, err := saramaRead(ctx, sarama.MaxVersion, sarama.ReadCommitted, 20); err != nil {
		return fmt.Errorf("read_committed: %w", err)
	}
	if _, err := saramaRead(ctx, sarama.MaxVersion, sarama.ReadUncommitted, 30); err != nil {
		return fmt.Errorf("read_uncommitted: %w", err)
	}
	admin, err := sarama.NewClusterAdmin(addresses(), saramaConfig(sarama.MaxVersion))
	if err != nil {
		return err
	}
	defer admin.Close()
	at, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
	if err != nil {
		return err
	}
	if got := at.GetBlock(topic, 0).Offset; got != 102 {
		return fmt.Errorf("the transactions committed offset %d", got)
	}
	newer, err := open(sarama.MaxVersion)
	if err != nil {
		return err
	}
	if err := older.BeginTxn(); err != nil {
		return err
	}
	_, _, err = older.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("late")})
	said("the older producer is told %v, and is in %v", err, older.TxnStatus())
	older.Close()
	if err := newer.BeginTxn(); err != nil {
		return err
	}
	if _, _, err := newer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("newer")}); err != nil {
		return err
	}
	if err := newer.CommitTxn(); err != nil {
		return fmt.Errorf("the newer producer: %w", err)
	}
	if _, err := saramaRead(ctx, sarama.MaxVersion, sarama.ReadCommitted, 21); err != nil {
		return fmt.Errorf("read_committed at the end: %w", err)
	}
	return newer.Close()
}

// What ClusterAdmin is told, as each version that it may speak like.
func saramaAdmin(ctx context.Context) error {
	for i, version := range saramaVersions {
		said("as %v", version)
		admin, err := sarama.NewClusterAdmin(addresses(), saramaConfig(version))
		if err != nil {
			return err
		}
		saramaTopics(admin, fmt.Sprintf("%s-%d", topic, i))
		saramaGroups(admin, fmt.Sprintf("%s-%d", topic, i), fmt.Sprintf("%s-%d", group, i))
		saramaSecurity(admin, fmt.Sprintf("%s-%d", group, i))
		if err := admin.Close(); err != nil {
			return err
		}
	}
	return nil
}

func saramaTopics(admin sarama.ClusterAdmin, name string) {
	small, wrong := "1000000", "minus one"
	detail := &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &small}}
	said("validate: %v", admin.CreateTopic(name, detail, true))
	said("create: %v", admin.CreateTopic(name, detail, false))
	said("create again: %v", admin.CreateTopic(name, detail, false))
	said("create with no partitions: %v", admin.CreateTopic(name+"-none", &sarama.TopicDetail{NumPartitions: 0, ReplicationFactor: 1}, false))
	said("create with many replicas: %v", admin.CreateTopic(name+"-many", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 9}, false))
	said("create at a wrong place: %v", admin.CreateTopic(name+"-placed", &sarama.TopicDetail{NumPartitions: -1, ReplicationFactor: -1, ReplicaAssignment: map[int32][]int32{0: {77}}}, false))
	said("create with a wrong config: %v", admin.CreateTopic(name+"-config", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &wrong}}, false))
	said("create with a wrong name: %v", admin.CreateTopic("a/b", detail, false))
	saramaSettle(admin, name, 3)
	said("partitions: %v", admin.CreatePartitions(name, 5, nil, false))
	said("fewer partitions: %v", admin.CreatePartitions(name, 2, nil, false))
	said("partitions at a wrong place: %v", admin.CreatePartitions(name, 6, [][]int32{{77}}, false))
	said("partitions of nothing: %v", admin.CreatePartitions(name+"-none", 6, nil, false))
	saramaSettle(admin, name, 5)
	described, err := admin.DescribeTopics([]string{name, name + "-none"})
	said("describe: %v", err)
	for _, d := range described {
		said("  %s: %v, internal %v, %d partitions", strings.ReplaceAll(d.Name, name, "T"), d.Err, d.IsInternal, len(d.Partitions))
	}
	listed, err := admin.ListTopics()
	said("list: %v; %d partitions, %d replicas, %d configs", err, listed[name].NumPartitions, listed[name].ReplicationFactor, len(listed[name].ConfigEntries))
	for _, resource := range []sarama.ConfigResource{{Type: sarama.TopicResource, Name: name}, {Type: sarama.TopicResource, Name: name + "-none"},
		{Type: sarama.BrokerResource, Name: "1"}, {Type: sarama.BrokerLoggerResource, Name: "1", ConfigNames: []string{"root"}}} {
		entries, err := admin.DescribeConfig(resource)
		slices.SortFunc(entries, func(a, b sarama.ConfigEntry) int { return strings.Compare(a.Name, b.Name) })
		said("configs of %v: %v", resource.Type, err)
		for _, e := range entries {
			if resource.Type == sarama.TopicResource || resource.Type == sarama.BrokerLoggerResource {
				said("  %s=%s read-only %v, default %v, source %v, sensitive %v, %d synonyms, type %v", e.Name, e.Value, e.ReadOnly, e.Default, e.Source, e.Sensitive, len(e.Synonyms), e.Type)
			}
		}
	}
	said("delete records of nothing there: %v", admin.DeleteRecords(name, map[int32]int64{0: 5}))
	said("delete records: %v", admin.DeleteRecords(name, map[int32]int64{0: 0, 1: -1}))
	said("delete records of no topic: %v", admin.DeleteRecords(name+"-none", map[int32]int64{0: 0}))
	said("alter: %v", admin.AlterConfig(sarama.TopicResource, name, map[string]*string{"cleanup.policy": &wrong}, false))
	compact := "compact"
	said("alter: %v", admin.AlterConfig(sarama.TopicResource, name, map[string]*string{"cleanup.policy": &compact}, false))
	said("alter of an unknown one: %v", admin.AlterConfig(sarama.TopicResource, name, map[string]*string{"no.such": &compact}, false))
	for op, value := range map[sarama.IncrementalAlterConfigsOperation]string{sarama.IncrementalAlterConfigsOperationSet: "delete"} {
		said("incremental %v: %v", op, admin.IncrementalAlterConfig(sarama.TopicResource, name, map[string]sarama.IncrementalAlterConfigsEntry{"cleanup.policy": {Operation: op, Value: &value}}, false))
	}
	elected, err := admin.ElectLeaders(sarama.PreferredElection, map[string][]int32{name: {0, 1}})
	said("elect: %v", err)
	for partition, result := range elected[name] {
		if partition == 0 {
			said("  %v %s", result.ErrorCode, saramaText(result.ErrorMessage))
		}
	}
	said("reassign: %v", admin.AlterPartitionReassignments(name, [][]int32{{77}}))
	ongoing, err := admin.ListPartitionReassignments(name, []int32{0})
	said("reassignments: %v %d", err, len(ongoing))
	offsets, err := admin.ListOffsets(map[string]map[int32]int64{name: {0: sarama.OffsetNewest, 1: sarama.OffsetOldest, 99: sarama.OffsetNewest}}, nil)
	said("offsets: %v", err)
	for _, partition := range []int32{0, 1, 99} {
		if at := offsets[name][partition]; at != nil {
			said("  %d: %d at %d, epoch %d, %v", partition, at.Offset, at.Timestamp, at.LeaderEpoch, at.Err)
		}
	}
	said("delete: %v", admin.DeleteTopic(name))
	said("delete again: %v", saramaGone(admin, name))
}

// Deletes a topic that is being deleted until it is gone.
func saramaGone(admin sarama.ClusterAdmin, name string) error {
	for range 100 {
		if err := admin.DeleteTopic(name); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// Waits until the topic has this many partitions for who asks.
func saramaSettle(admin sarama.ClusterAdmin, name string, partitions int) {
	for range 200 {
		described, err := admin.DescribeTopics([]string{name})
		if err == nil && len(described) == 1 && len(described[0].Partitions) == partitions {
			time.Sleep(300 * time.Millisecond) // the other nodes hear of it, too
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func saramaGroups(admin sarama.ClusterAdmin, name, group string) {
	detail := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}
	said("create: %v", admin.CreateTopic(name+"-g", detail, false))
	saramaSettle(admin, name+"-g", 1)
	described, err := admin.DescribeConsumerGroups([]string{group})
	said("describe an unknown group: %v", err)
	for _, d := range described {
		said("  %v, %q, %q, %q, %d members, operations %d", d.Err, d.State, d.ProtocolType, d.Protocol, len(d.Members), d.AuthorizedOperations)
	}
	said("delete an unknown group: %v", admin.DeleteConsumerGroup(group))
	altered, err := admin.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{name + "-g": {0: {Offset: 7, Metadata: "seven", LeaderEpoch: -1}, 9: {Offset: 1, LeaderEpoch: -1}}, name + "-none": {0: {Offset: 1, LeaderEpoch: -1}}}, nil)
	said("alter offsets: %v", err)
	if altered != nil {
		said("  %v %v, %v", altered.Errors[name+"-g"][0], altered.Errors[name+"-g"][9], altered.Errors[name+"-none"][0])
	}
	fetched, err := admin.ListConsumerGroupOffsets(group, nil)
	said("offsets: %v", err)
	if fetched != nil {
		for t, partitions := range fetched.Blocks {
			for p, at := range partitions {
				said("  %s %d: %d %q epoch %d %v", strings.ReplaceAll(t, name, "T"), p, at.Offset, at.Metadata, at.LeaderEpoch, at.Err)
			}
		}
	}
	listed, err := admin.ListConsumerGroups()
	said("list: %v; %q", err, listed[group])
	described, err = admin.DescribeConsumerGroups([]string{group})
	said("describe: %v", err)
	for _, d := range described {
		said("  %v, %q, %q, %q, %d members", d.Err, d.State, d.ProtocolType, d.Protocol, len(d.Members))
	}
	said("delete an offset: %v", admin.DeleteConsumerGroupOffset(group, name+"-g", 0))
	said("delete an offset of no topic: %v", admin.DeleteConsumerGroupOffset(group, name+"-none", 0))
	left, err := admin.RemoveMemberFromConsumerGroup(group, []string{"nobody"})
	said("remove nobody: %v", err)
	if left != nil {
		said("  %v %d", left.Err, len(left.Members))
		for _, m := range left.Members {
			said("    %v", m.Err)
		}
	}
	said("delete: %v", admin.DeleteConsumerGroup(group))
	said("delete: %v", admin.DeleteTopic(name+"-g"))
}

func saramaSecurity(admin sarama.ClusterAdmin, name string) {
	resource := sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: name, ResourcePatternType: sarama.AclPatternLiteral}
	acl := sarama.Acl{Principal: "User:somebody", Host: "*", Operation: sarama.AclOperationRead, PermissionType: sarama.AclPermissionAllow}
	said("acl: %v", admin.CreateACL(resource, acl))
	acl.Operation = sarama.AclOperationIdempotentWrite
	said("acl that no topic has: %v", admin.CreateACL(resource, acl))
	acl.Operation, acl.Principal = sarama.AclOperationRead, "somebody"
	said("acl of no principal: %v", admin.CreateACL(resource, acl))
	filter := sarama.AclFilter{ResourceType: sarama.AclResourceTopic, ResourceName: &name, ResourcePatternTypeFilter: sarama.AclPatternMatch,
		Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny}
	var listed []sarama.ResourceAcls
	var err error
	for range 100 {
		listed, err = admin.ListAcls(filter)
		if err != nil || len(listed) > 0 && len(listed[0].Acls) == 2 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	said("acls: %v %d", err, len(listed))
	var lines []string
	for _, l := range listed {
		for _, a := range l.Acls {
			lines = append(lines, fmt.Sprintf("  %v %v %s %s %v %v", l.ResourceType, l.ResourcePatternType, a.Principal, a.Host, a.Operation, a.PermissionType))
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		said("%s", line)
	}
	deleted, err := admin.DeleteACL(filter, false)
	said("delete acls: %v %d", err, len(deleted))
	_, err = admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{
		{Name: name, Mechanism: sarama.SCRAM_MECHANISM_SHA_256, Iterations: 4096, Salt: []byte("salt"), Password: []byte("secret")}})
	said("scram: %v", err)
	results, err := admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{
		{Name: name, Mechanism: sarama.SCRAM_MECHANISM_SHA_512, Iterations: 100, Salt: []byte("salt"), Password: []byte("secret")}})
	said("scram with few iterations: %v", err)
	for _, r := range results {
		said("  %v %s", r.ErrorCode, saramaText(r.ErrorMessage))
	}
	var users []*sarama.DescribeUserScramCredentialsResult
	for range 50 {
		users, err = admin.DescribeUserScramCredentials([]string{name, name + "-none"})
		if err != nil || slices.ContainsFunc(users, func(u *sarama.DescribeUserScramCredentialsResult) bool { return len(u.CredentialInfos) == 1 }) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	said("scram users: %v", err)
	slices.SortFunc(users, func(a, b *sarama.DescribeUserScramCredentialsResult) int { return strings.Compare(a.User, b.User) })
	for _, u := range users {
		said("  %v %s", u.ErrorCode, strings.ReplaceAll(saramaText(u.ErrorMessage), name, "U"))
		for _, c := range u.CredentialInfos {
			said("    %v %d", c.Mechanism, c.Iterations)
		}
	}
	_, err = admin.DeleteUserScramCredentials([]sarama.AlterUserScramCredentialsDelete{{Name: name, Mechanism: sarama.SCRAM_MECHANISM_SHA_256}})
	said("delete scram: %v", err)
	entity := []sarama.QuotaEntityComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Name: name}}
	said("quota: %v", admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1e6}, false))
	said("unknown quota: %v", admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "no_such_rate", Value: 1e6}, false))
	said("negative quota: %v", admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: -5}, false))
	said("quota of half a percent: %v", admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "request_percentage", Value: 0.5}, false))
	said("quota of half a byte: %v", admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "consumer_byte_rate", Value: 0.5}, false))
	var quotas []sarama.DescribeClientQuotasEntry
	for range 50 {
		quotas, err = admin.DescribeClientQuotas([]sarama.QuotaFilterComponent{{EntityType: sarama.QuotaEntityUser, MatchType: sarama.QuotaMatchExact, Match: name}}, true)
		if err != nil || len(quotas) > 0 && len(quotas[0].Values) == 2 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	said("quotas: %v", err)
	for _, q := range quotas {
		said("  %v", q.Values)
	}
	said("remove quota: %v", admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "producer_byte_rate", Remove: true}, false))
	said("remove quota: %v", admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "request_percentage", Remove: true}, false))
	features, err := admin.UpdateFeatures([]sarama.FeatureUpdate{{Feature: "no.such", MaxVersionLevel: 1}})
	said("features: %v", err)
	for _, f := range features {
		said("  %v %s", f.ErrorCode, saramaText(f.ErrorMessage))
	}
}

func saramaText(text *string) string {
	if text == nil {
		return "<nil>"
	}
	return *text
}
