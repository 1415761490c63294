// franz-go: the checks franz-*.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// In each codec, with keys, headers and tombstones; acks 0, 1 and all.
func produce(ctx context.Context) error {
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(),
		kgo.Lz4Compression(), kgo.ZstdCompression()}
	for i, codec := range codecs {
		cl, err := client(kgo.ProducerBatchCompression(codec))
		if err != nil {
			return err
		}
		for j := range 50 {
			r := &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: []byte(strings.Repeat("x", j)),
				Headers: []kgo.RecordHeader{{Key: "codec", Value: fmt.Append(nil, i)}}}
			if j == 0 {
				r.Value = nil
			}
			if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
				return fmt.Errorf("codec %d: %w", i, err)
			}
		}
		cl.Close()
	}
	got, err := read(ctx, 50*len(codecs))
	if err != nil {
		return err
	}
	for _, r := range got {
		if len(r.Headers) != 1 || string(r.Headers[0].Value) != string(r.Key) {
			return fmt.Errorf("headers %v of key %s", r.Headers, r.Key)
		}
	}
	for _, acks := range []kgo.Acks{kgo.LeaderAck(), kgo.NoAck()} {
		cl, err := client(kgo.RequiredAcks(acks), kgo.DisableIdempotentWrite())
		if err != nil {
			return err
		}
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("acks")}).FirstErr(); err != nil {
			return fmt.Errorf("acks %v: %w", acks, err)
		}
		cl.Close()
	}
	_, err = read(ctx, 50*len(codecs)+2)
	return err
}

// Two members share the partitions; one leaves, and the other goes on from what was committed.
func members(next bool) func(context.Context) error {
	return func(ctx context.Context) error {
		if next {
			ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)
		}
		var all []*kgo.Client
		for range 2 {
			cl, err := client(kgo.WithContext(ctx), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err != nil {
				return err
			}
			defer cl.Close()
			all = append(all, cl)
		}
		adm := kadm.NewClient(all[0])
		share := func(want ...int) func() error {
			return func() error {
				got, err := held(ctx, adm, next)
				slices.Sort(got)
				if err == nil && !slices.Equal(got, want) {
					err = fmt.Errorf("the members have %v partitions, want %v", got, want)
				}
				return err
			}
		}
		if err := until(ctx, all, share(2, 2)); err != nil {
			return err
		}
		for p := range int32(4) {
			r := &kgo.Record{Topic: topic, Partition: p, Value: []byte("1")}
			if err := all[0].ProduceSync(ctx, r).FirstErr(); err != nil {
				return err
			}
		}
		for seen := 0; seen < 4; {
			for _, cl := range all {
				short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				seen += cl.PollFetches(short).NumRecords()
				cancel()
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%d of 4 records", seen)
			}
		}
		for _, cl := range all {
			if err := cl.CommitUncommittedOffsets(ctx); err != nil {
				return err
			}
		}
		all[1].LeaveGroup()
		if err := until(ctx, all[:1], share(4)); err != nil {
			return err
		}
		offsets, err := adm.FetchOffsets(ctx, group)
		if err != nil {
			return err
		}
		for p := range int32(4) {
			if at, ok := offsets.Lookup(topic, p); !ok || at.At != 1 {
				return fmt.Errorf("partition %d is committed at %v", p, at.At)
			}
		}
		return nil
	}
}

// How many partitions each member of the group has.
func held(ctx context.Context, adm *kadm.Client, next bool) (counts []int, err error) {
	if next {
		groups, err := adm.DescribeConsumerGroups(ctx, group)
		if err != nil {
			return nil, err
		}
		for _, m := range groups[group].Members {
			counts = append(counts, len(m.Assignment[topic]))
		}
		return counts, groups[group].Err
	}
	groups, err := adm.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	for _, m := range groups[group].Members {
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range assigned.Topics {
				counts = append(counts, len(t.Partitions))
			}
		}
	}
	return counts, groups[group].Err
}

// Committed and aborted ones, and what readers of either kind see; an older producer of the same id is fenced.
func transactions(ctx context.Context) error {
	older, err := client(kgo.TransactionalID(group + "-txn"))
	if err != nil {
		return err
	}
	defer older.Close()
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := older.BeginTransaction(); err != nil {
			return err
		}
		for i := range 10 {
			r := &kgo.Record{Topic: topic, Value: fmt.Append(nil, commit, i)}
			if err := older.ProduceSync(ctx, r).FirstErr(); err != nil {
				return err
			}
		}
		if err := older.EndTransaction(ctx, commit); err != nil {
			return fmt.Errorf("end %v: %w", commit, err)
		}
	}
	if _, err := read(ctx, 20, kgo.FetchIsolationLevel(kgo.ReadCommitted())); err != nil {
		return fmt.Errorf("read_committed: %w", err)
	}
	if _, err := read(ctx, 30); err != nil {
		return fmt.Errorf("read_uncommitted: %w", err)
	}
	newer, err := client(kgo.TransactionalID(group + "-txn"))
	if err != nil {
		return err
	}
	defer newer.Close()
	if _, _, err := newer.ProducerID(ctx); err != nil {
		return err
	}
	if err := older.BeginTransaction(); err != nil {
		return err
	}
	err = older.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("late")}).FirstErr()
	if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
		return fmt.Errorf("the older producer is told %v", err)
	}
	return nil
}

// What kadm asks for, on a topic of its own.
func admin(ctx context.Context) error {
	cl, err := client()
	if err != nil {
		return err
	}
	defer cl.Close()
	adm, made, ms := kadm.NewClient(cl), topic+"-made", "1000000"
	if _, err := adm.CreateTopic(ctx, 3, -1, map[string]*string{"retention.ms": &ms}, made); err != nil {
		return err
	}
	if _, err := adm.CreateTopic(ctx, 3, -1, nil, made); !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("created twice: %v", err)
	}
	err = until(ctx, nil, func() error {
		ends, err := adm.ListEndOffsets(ctx, made)
		if err == nil {
			err = ends.Error()
		}
		if err == nil && len(ends[made]) != 3 {
			err = fmt.Errorf("%d end offsets", len(ends[made]))
		}
		return err
	})
	if err != nil {
		return err
	}
	configs, err := adm.DescribeTopicConfigs(ctx, made)
	if err != nil {
		return err
	}
	found := slices.ContainsFunc(configs[0].Configs, func(c kadm.Config) bool {
		return c.Key == "retention.ms" && c.MaybeValue() == ms
	})
	if !found {
		return fmt.Errorf("retention.ms is not among %v", configs[0].Configs)
	}
	nodes, err := adm.ListBrokers(ctx)
	if err != nil {
		return err
	}
	logs, err := adm.DescribeAllLogDirs(ctx, nil)
	if err != nil || len(logs) != len(nodes) {
		return fmt.Errorf("log dirs of %d of %d nodes: %v", len(logs), len(nodes), err)
	}
	if _, err := adm.ListGroups(ctx); err != nil {
		return err
	}
	deleted, err := adm.DeleteTopics(ctx, made)
	if err == nil {
		err = deleted.Error()
	}
	return err
}

func client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(bootstrap, ",")...)}, options...)...)
}

// Reads this many records of the topic, and sees that no more come at once.
func read(ctx context.Context, count int, options ...kgo.Opt) (got []*kgo.Record, err error) {
	options = append(options, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	cl, err := client(options...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	for len(got) < count {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d records: %w", len(got), count, err)
		}
		got = append(got, fetches.Records()...)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if more := cl.PollFetches(short).NumRecords(); len(got)+more > count {
		return nil, fmt.Errorf("%d records, want %d", len(got)+more, count)
	}
	return got, nil
}

// Polls these clients until a condition holds.
func until(ctx context.Context, polled []*kgo.Client, condition func() error) error {
	for {
		err := condition()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		for _, cl := range polled {
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			cl.PollFetches(short)
			cancel()
		}
		time.Sleep(50 * time.Millisecond)
	}
}
