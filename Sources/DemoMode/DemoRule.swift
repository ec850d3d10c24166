// What one demo endpoint or demo service answers with, compiled once when the plan is built.

package import HTTPWire

/// The demo answer of one endpoint, or of a whole service: immutable, shared by every loop.
package struct DemoRule: Sendable {
    /// The name of the endpoint or service; it is part of every draw's key and stands in `Drydock-Demo`.
    package let name: String
    /// `random_seed`: another seed gives other draws for the same requests. Default 0.
    package let seed: UInt64
    /// Nanoseconds to wait before the answer, both ends included. Default: no wait.
    package let latency: ClosedRange<UInt64>
    /// The status of an answer that is not a failure. Default 200.
    package let status: Int
    /// The bytes of an answer that is not a failure; nil is an empty answer.
    package let file: DemoFile?
    /// Fields for every answer, failures too; a Content-Type here wins over the file's.
    package let fields: Fields
    /// How often and with what the rule fails; nil never fails.
    package let failure: DemoFailure?

    package init(
        name: String,
        seed: UInt64 = 0,
        latency: ClosedRange<UInt64> = 0...0,
        status: Int = 200,
        file: DemoFile? = nil,
        fields: Fields = Fields(),
        failure: DemoFailure? = nil
    ) {
        self.name = name
        self.seed = seed
        self.latency = latency
        self.status = status
        self.file = file
        self.fields = fields
        self.failure = failure
    }
}

/// A share of a rule's answers that fail.
package struct DemoFailure: Sendable {
    /// The share that fails, 0 to 1: 0 never, 1 always. Values outside are brought to the
    /// nearer end; not-a-number is 0.
    package let chance: Double
    /// The status of a failure. Default 503.
    package let status: Int
    /// The bytes of a failure; nil is an empty answer.
    package let file: DemoFile?

    package init(chance: Double, status: Int = 503, file: DemoFile? = nil) {
        self.chance = chance.isNaN ? 0 : min(max(chance, 0), 1)
        self.status = status
        self.file = file
    }
}
