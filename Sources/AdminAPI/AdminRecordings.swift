// Recordings in the admin API: made of what is stored, and compared with what origins answer now.

/// The answer of `POST /v1/drift`. No member has a value of a recorded content.
package struct AdminDrift: Codable, Sendable, Equatable {
    package struct Field: Codable, Sendable, Equatable {
        package var name: String
        /// Nil where the recording has no such field.
        package var recorded: String?
        /// Nil where the origin sends none.
        package var now: String?

        package init(name: String, recorded: String?, now: String?) {
            self.name = name
            self.recorded = recorded
            self.now = now
        }
    }

    package enum State: String, Codable, Sendable, CaseIterable {
        case changed, gone, unreachable
        /// Its files cannot be used; the log says why.
        case unreadable
        /// It was not asked for.
        case leftOut = "left-out"
    }

    /// A recording that is not as it was, or about which nothing is known.
    package struct Recording: Codable, Sendable, Equatable {
        package var service: String
        /// Such as `GET /users/7`; of one that is unreadable, the name of its file.
        package var request: String
        package var state: State
        /// Of the recording; nil where it is unreadable.
        package var recordedStatus: Int?
        /// When it was recorded, in Unix seconds; nil where it is unreadable.
        package var recordedAt: Int64?
        /// Of the origin, where it is another.
        package var status: Int?
        /// Fields that are others now.
        package var fields: [Field] = []
        /// What differs in the content, such as `user.roles[2] is missing`.
        package var content: [String] = []
        /// Why the origin was not reached or not asked.
        package var reason: String?

        package init(service: String, request: String, state: State) {
            self.service = service
            self.request = request
            self.state = state
        }
    }

    package var same = 0
    package var changed = 0
    package var gone = 0
    package var unreachable = 0
    package var unreadable = 0
    package var leftOut = 0
    /// All but those that are the same, by service and request.
    package var recordings: [Recording] = []

    package init() {}

    /// An origin answers otherwise than it was recorded.
    package var hasDrifted: Bool { changed + gone > 0 }
}

/// The answer of `POST /v1/recordings?keep=URL`.
package struct AdminRecording: Codable, Sendable, Equatable {
    package var service: String
    /// What it answers, such as `GET /users/7`.
    package var request: String
    package var status: Int
    /// Of its content.
    package var bytes: Int
    /// The beginning of the names of its two files.
    package var name: String

    package init(service: String, request: String, status: Int, bytes: Int, name: String) {
        self.service = service
        self.request = request
        self.status = status
        self.bytes = bytes
        self.name = name
    }
}
