import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints Kafka's error codes: number, name, whether a retry may help, whether the metadata are to be refreshed. */
class PrintErrors {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            Exception exception = error.exception();
            System.out.println(String.join("\t",
                    Short.toString(error.code()),
                    error.name(),
                    Boolean.toString(exception instanceof RetriableException),
                    Boolean.toString(exception instanceof InvalidMetadataException)));
        }
    }
}
