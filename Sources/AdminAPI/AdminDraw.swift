// A draw that is repeated by its name.

/// `GET /v1/demo/draw`: what a request with this draw is answered with, by the configuration that is in force.
package struct AdminDraw: Codable, Sendable, Equatable {
    /// One rule of demo mode, or of `faults`, and what it draws.
    package struct Member: Codable, Sendable, Equatable {
        /// As Drydock-Demo had it.
        package var said: String
        /// As Drydock-Demo would have it now; nil: the rule draws nothing now, or is gone.
        package var drawn: String?
        /// Nanoseconds that the answer is late by this rule; nil: the rule says nothing of it.
        package var latency: UInt64?
        /// Why nothing is drawn, or why something else may be.
        package var note: String?

        package init(said: String, drawn: String? = nil, latency: UInt64? = nil, note: String? = nil) {
            self.said = said
            self.drawn = drawn
            self.latency = latency
            self.note = note
        }
    }

    package var members: [Member]
    /// All of it is drawn as it was said.
    package var isSame: Bool

    package init(members: [Member], isSame: Bool) {
        self.members = members
        self.isSame = isSame
    }
}
