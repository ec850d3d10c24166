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

    /// The bytes, where they are known before a request comes.
    package var file: DemoFile? {
        if case .file(let file) = self { file } else { nil }
    }
}
