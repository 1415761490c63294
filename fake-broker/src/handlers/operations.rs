//! What a client may do, as the bit field that Kafka answers when there is no authorizer: everything that exists.

/// On a cluster: create, alter, describe, act for it, read and alter its configs, write idempotently.
pub(crate) const CLUSTER: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);
/// On a topic: read, write, create, delete, alter, describe, read and alter its configs.
pub(crate) const TOPIC: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);

/// The bit of each of Kafka's `AclOperation` codes.
const fn bits(operations: &[u32]) -> i32 {
    let mut field = 0;
    let mut index = 0;
    while index < operations.len() {
        field |= 1 << operations[index];
        index += 1;
    }
    field
}
