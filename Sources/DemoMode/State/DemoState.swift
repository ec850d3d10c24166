// What the demo answers of a service remember from one request to the next, across reloads.

/// The memory of a service's demo answers.
///
/// Sendable: the ordinals have mutexes of their own.
package final class DemoState: Sendable {
    /// The number of each request among those with its key.
    package let ordinals: DrawOrdinals

    package init() { ordinals = DrawOrdinals() }
}
