// Puts a value into the place of another without letting go of the other under the mutex.

package import Synchronization

extension Mutex where Value: Sendable {
    /// Puts `value` into the place of what is there. What was there goes to the caller, who lets go of it without the mutex:
    /// that may run code which takes the same mutex again.
    @discardableResult
    package func exchange(_ value: Value) -> Value {
        withLock { current in
            let before = current
            current = value
            return before
        }
    }
}
