// How often those tests try that have random inputs: a part of it every day, and all of it where somebody asks for it.

import Foundation

/// `DRYDOCK_THOROUGH=1` in the environment has them make all of their attempts; else they make a quarter.
package enum Thoroughness {
    /// Whether all attempts are made.
    package static let isFull = ProcessInfo.processInfo.environment["DRYDOCK_THOROUGH"] == "1"

    /// How many of so many attempts are made; one at least.
    package static func attempts(_ count: Int) -> Int { isFull ? count : max(1, count / 4) }
}
