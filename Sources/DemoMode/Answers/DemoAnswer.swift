// One answer of a demo rule: its status, its content and its fields.

package import HTTPWire

/// What a rule answers with. Immutable, shared by every loop.
package struct DemoAnswer: Sendable {
    /// Default 200.
    package let status: Int
    /// Default: none.
    package let content: DemoContent
    /// A Content-Type here wins over the content's.
    package let fields: Fields

    package init(status: Int = 200, content: DemoContent = .none, fields: Fields = Fields()) {
        self.status = status
        self.content = content
        self.fields = fields
    }
}

/// Where the bytes of an answer come from.
package enum DemoContent: Sendable {
    /// There are none.
    case none
    case file(DemoFile)
    /// A text that is made for each request.
    case template(DemoTemplate, contentType: String)
    /// Items that requests read and change.
    case collection(DemoCollection)
    /// Server-sent events, each in its time.
    case events(DemoEvents)

    /// The bytes, where they are known before a request comes.
    package var file: DemoFile? {
        if case .file(let file) = self { file } else { nil }
    }

    /// Every request gets the same.
    package var isFixed: Bool {
        switch self {
        case .none, .file: true
        case .template, .collection, .events: false
        }
    }

    /// The content of the request is part of what is made.
    package var readsBody: Bool {
        switch self {
        case .none, .file, .events: false
        case .template(let template, contentType: _): template.readsBody
        case .collection: true
        }
    }

    /// The status is known when the answer is made, and not drawn.
    package var hasOwnStatus: Bool {
        if case .collection = self { true } else { false }
    }

    /// Nil where there is no body, or each has its own.
    package var contentType: String? {
        switch self {
        case .none, .collection: nil
        case .file(let file): file.contentType
        case .template(_, let contentType): contentType
        case .events: DemoEvents.contentType
        }
    }
}
