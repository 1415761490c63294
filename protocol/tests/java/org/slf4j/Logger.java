package org.slf4j;

/** What the table of errors declares a field of, and does not call here: the jar that has it is not fetched. */
public interface Logger {
}
