// The spans of a request: while they last, and as they are sent to a collector.

import EventLoop
package import HTTPWire

/// A step of a request that has ended, with its beginning and end in nanoseconds since 1970.
package struct TraceSpan: Sendable, Equatable {
    /// The kinds of OpenTelemetry that occur, by their numbers there.
    package enum Kind: Int, Sendable { case `internal` = 1, server = 2, client = 3 }

    /// The value of an attribute.
    package enum Value: Sendable, Equatable {
        case text(String)
        case number(Int)
    }

    /// What an attribute says of a step, by its name in OpenTelemetry's conventions or below `drydock.`.
    package struct Attribute: Sendable, Equatable {
        package let name: String
        package let value: Value

        /// The most bytes of a text: spans that wait hold no more of what clients send.
        private static let longest = 1024

        package init(_ name: String, _ value: String) {
            self.name = name
            let isShort = value.utf8.count <= Self.longest
            self.value = .text(isShort ? value : String(decoding: value.utf8.prefix(Self.longest), as: UTF8.self))
        }

        package init(_ name: String, _ value: Int) {
            self.name = name
            self.value = .number(value)
        }
    }

    package let context: TraceContext
    /// The id of the span that this one is a part of; nil for the first of a trace.
    package let parent: UInt64?
    package let name: String
    package let kind: Kind
    package let start: UInt64
    package let end: UInt64
    package let attributes: [Attribute]
    /// What went wrong; nil if nothing did.
    package let error: String?

    package init(
        _ context: TraceContext,
        parent: UInt64?,
        name: String,
        kind: Kind,
        start: UInt64,
        end: UInt64,
        attributes: [Attribute] = [],
        error: String? = nil
    ) {
        self.context = context
        self.parent = parent
        self.name = name
        self.kind = kind
        self.start = start
        self.end = end
        self.attributes = attributes
        self.error = error
    }
}

/// A step of a request that has begun, and where its span goes when it ends.
package struct OpenSpan: Sendable {
    package let context: TraceContext
    private let parent: UInt64?
    /// The beginning in monotonic nanoseconds.
    private let startedAt: UInt64
    private let queue: SpanQueue

    /// Begins the span of a request.
    /// - Parameters:
    ///   - parent: the context that the request has brought; nil if it has brought none.
    ///   - isSampled: whether the spans of the request are recorded.
    ///   - startedAt: monotonic nanoseconds.
    package init(below parent: TraceContext?, isSampled: Bool, at startedAt: UInt64, to queue: SpanQueue) {
        context = parent?.child() ?? .made(isSampled: isSampled)
        self.parent = parent?.span
        self.startedAt = startedAt
        self.queue = queue
    }

    private init(_ context: TraceContext, parent: UInt64?, _ queue: SpanQueue) {
        self.context = context
        self.parent = parent
        self.queue = queue
        startedAt = Monotonic.now()
    }

    /// Whether the span is recorded.
    package var isSampled: Bool { context.isSampled }

    /// Begins a step of this one now.
    package func child() -> OpenSpan { OpenSpan(context.child(), parent: context.span, queue) }

    /// The step that a request names as its parent; nil if it names none.
    func named(by fields: Fields) -> OpenSpan? {
        TraceContext(fields).map { OpenSpan($0, parent: context.span, queue) }
    }

    /// Ends the step now, and records its span if it is sampled.
    package func end(
        _ name: String,
        _ kind: TraceSpan.Kind,
        _ attributes: @autoclosure () -> [TraceSpan.Attribute] = [],
        error: String? = nil
    ) {
        guard isSampled else { return }
        let end = EventHub.wallTime()
        let span = TraceSpan(
            context.recorded,
            parent: parent,
            name: name,
            kind: kind,
            start: end &- (Monotonic.now() &- startedAt),
            end: end,
            attributes: attributes(),
            error: error
        )
        queue.put(span)
    }
}

extension Method {
    /// The method by OpenTelemetry's conventions, in which those that Drydock has no rule for have one name.
    package var traceName: String { if case .other = self { "_OTHER" } else { name } }
}
