// Clients in Go as checks: interop-go CHECK BOOTSTRAP TOPIC GROUP. Says INTEROP-OK, or INTEROP-FAIL and why; what a
// client was told is said in lines that begin with SAID.
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

var check, bootstrap, topic, group = os.Args[1], os.Args[2], os.Args[3], os.Args[4]

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	checks := map[string]func(context.Context) error{
		"franz-produce": produce, "franz-group": members(false), "franz-848": members(true),
		"franz-transactions": transactions, "franz-admin": admin,
		"sarama-produce": saramaProduce, "sarama-group": saramaGroup, "sarama-transactions": saramaTransactions,
		"sarama-admin":    saramaAdmin,
		"segment-produce": segmentProduce, "segment-group": segmentGroup, "segment-transactions": segmentTransactions,
		"segment-admin": segmentAdmin, "segment-sasl": segmentSasl,
	}
	if err := checks[check](ctx); err != nil {
		fmt.Println("INTEROP-FAIL", err)
		os.Exit(1)
	}
	fmt.Println("INTEROP-OK")
}

// One line of the transcript.
func said(format string, values ...any) {
	fmt.Printf("SAID "+format+"\n", values...)
}
