// Package suites names the modules whose own tests judge the fake: `run` compiles them from the module cache.
package suites

import (
	_ "github.com/twmb/franz-go/pkg/kadm"
	_ "github.com/twmb/franz-go/pkg/kgo"
)
