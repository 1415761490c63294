package org.slf4j;

/** Makes loggers that nobody calls. */
public class LoggerFactory {
    public static Logger getLogger(Class<?> owner) {
        return new Logger() { };
    }
}
