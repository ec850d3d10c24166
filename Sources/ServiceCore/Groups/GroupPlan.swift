// A group of calls as a value: the calls, their order, and the values that each takes from its answer.

package import Policies

/// One call of a group: a request to a service, with placeholders for values of earlier answers.
package struct GroupCall: Sendable, Equatable {
    /// The name of the service that is called.
    package var service: String
    package var method: String
    /// The path below the service's prefix or host, with its slash; values in it are percent-encoded.
    package var path: PlaceholderText
    package var query: [(name: String, value: PlaceholderText)] = []
    package var fields: [(name: String, value: PlaceholderText)] = []
    /// The content of the request; nil for none.
    package var body: PlaceholderText?
    /// The values that are taken from the answer for later calls, by name.
    package var take: [String: TakenPath] = [:]
    /// The condition under which the call is made; nil to make it in any case.
    package var condition: ValueCondition?

    package init(service: String, method: String = "GET", path: PlaceholderText) {
        self.service = service
        self.method = method
        self.path = path
    }

    /// True if a value is taken from the body, which has to be read then.
    var takesFromBody: Bool {
        take.values.contains { source in
            if case .body = source { true } else { false }
        }
    }

    package static func == (left: GroupCall, right: GroupCall) -> Bool {
        left.service == right.service && left.method == right.method && left.path == right.path
            && left.query.elementsEqual(right.query) { $0 == $1 }
            && left.fields.elementsEqual(right.fields) { $0 == $1 }
            && left.body == right.body && left.take == right.take && left.condition == right.condition
    }
}

/// A group of calls with its order and its rule for failures.
package struct GroupPlan: Sendable, Equatable {
    package var name: String
    package var mode: GroupMode
    package var onError: GroupFailurePolicy
    package var calls: [GroupCall]

    package init(
        name: String,
        mode: GroupMode = .serial,
        onError: GroupFailurePolicy = .stop,
        calls: [GroupCall]
    ) {
        self.name = name
        self.mode = mode
        self.onError = onError
        self.calls = calls
    }

    /// The name of each call in reports: service and path, without values, with a number if an earlier call has the
    /// same name.
    package var labels: [String] {
        var counts: [String: Int] = [:]
        return calls.map { call in
            let label = "\(call.service) \(call.path.shown)"
            let count = counts[label, default: 0] + 1
            counts[label] = count
            return count == 1 ? label : "\(label) (\(count))"
        }
    }
}

/// The request of a call with its values filled in. It may hold secrets, and is never shown.
package struct GroupRequest: Sendable, Equatable {
    package var service: String
    package var method: String
    /// The path and query below the service's prefix or host.
    package var target: String
    package var fields: [Field] = []
    package var body: [UInt8]?

    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }
}
