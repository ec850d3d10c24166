// Plain copies (`store_as`) that could not be written: each failure is reported once, until the
// file can be written again.

import Synchronization

/// Sendable: the state is under a mutex.
package final class StoredFileTroubles: Sendable {
    private struct State {
        var listener: (@Sendable (String) -> Void)?
        var told: Set<String> = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Sets the listener for failures; any thread.
    package func listen(_ listener: @escaping @Sendable (String) -> Void) {
        let before = state.withLock { state in
            defer { state.listener = listener }
            return state.listener
        }
        withExtendedLifetime(before) {}
    }

    package func tell(_ name: String, _ error: any Error) {
        let listener = state.withLock { $0.told.insert(name).inserted ? $0.listener : nil }
        listener?("the file \(name) (store_as) is not written, and stays as it is: \(error)")
    }

    func clear(_ name: String) { state.withLock { _ = $0.told.remove(name) } }
}

/// A response that is no use as a file.
struct CodedContent: Error, CustomStringConvertible {
    var description: String {
        "the response has a Content-Encoding; ask for none with headers: { set: { Accept-Encoding: identity } }"
    }
}
