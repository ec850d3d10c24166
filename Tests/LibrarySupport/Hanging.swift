// A closure of a program that never comes back.

import Foundation
package import TestSupport

/// Returns when the gate opens, and takes no notice of being cancelled. It keeps a thread of its own waiting, and none of
/// those that tasks run on.
package func hang(until gate: Gate) async {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            gate.wait()
            continuation.resume()
        }
    }
}
