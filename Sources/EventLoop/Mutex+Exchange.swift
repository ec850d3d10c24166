// Puts a value into the place of another without letting go of the other under the mutex.

package import Synchronization

extension Mutex where Value: Sendable {
    /// Replaces the value and returns the old one. The caller releases it outside the mutex, because its deinit may run
    /// code that takes the same mutex.
    @discardableResult
    package func exchange(_ value: Value) -> Value {
        withLock { current in
            let before = current
            current = value
            return before
        }
    }
}
