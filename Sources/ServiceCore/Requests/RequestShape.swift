// The changes of an endpoint to a request before it is sent: another target, parameters, another content.

package import Policies
package import Trees

/// A default of a parameter.
package struct DefaultParameter: Sendable, Equatable {
    package let name: String
    /// The value if the request does not name the parameter.
    package let value: ContentTree

    package init(_ name: String, _ value: ContentTree) {
        self.name = name
        self.value = value
    }
}

/// The changes of one endpoint; an endpoint without changes has no such object. It is an object so that other plans
/// stay small.
///
/// Sendable: it never changes.
package final class RequestShape: Sendable, Equatable {
    /// The target below the base URL; nil for the client's path.
    package let to: TargetTemplate?
    package let parameters: [DefaultParameter]
    /// The part of a request for parameters that `to` does not use.
    package let placement: ParameterPlacement
    package let style: FormStyle
    /// The changes to the content; nil if it is sent unchanged.
    package let body: BodyShape?
    /// The path pattern of the endpoint.
    package let pattern: PathPattern

    package init(
        to: TargetTemplate? = nil,
        parameters: [DefaultParameter] = [],
        placement: ParameterPlacement = .query,
        style: FormStyle = FormStyle(),
        body: BodyShape? = nil,
        pattern: PathPattern
    ) {
        self.to = to
        self.parameters = parameters
        self.placement = placement
        self.style = style
        self.body = body
        self.pattern = pattern
    }

    package static func == (left: RequestShape, right: RequestShape) -> Bool {
        left.to == right.to && left.parameters == right.parameters && left.placement == right.placement
            && left.style == right.style && left.body == right.body && left.pattern == right.pattern
    }

    /// The most bytes of content that is read as a whole.
    package var contentLimit: Int { body?.limit ?? BodyShape.defaultLimit }

    /// Whether the content is made anew. It is read as a whole for that, unless it is a part of a multipart content.
    package var changesContent: Bool {
        if let body, body.changesContent { return true }
        let used = to?.parameters ?? []
        return placement == .body && parameters.contains { !used.contains($0.name) }
    }

    /// Whether a parameter of `to` may be in the content of the request with this target.
    package func looksIntoContent(for rest: String) -> Bool {
        guard let to else { return false }
        let request = TargetParts(rest, pattern)
        return to.parameters.contains { request.path[$0] == nil && request.indices(of: $0).isEmpty }
    }
}

/// The changes to the content of a request.
package struct BodyShape: Sendable, Equatable {
    /// The default of ``limit``, 1 MiB.
    package static let defaultLimit = 1 << 20

    /// The format in which the content is sent; nil for its own, or for JSON if there is none.
    package var encoding: ContentEncodingFormat?
    package var defaults: ContentTree
    package var stripsNulls: Bool
    /// The style of the names of members; nil to keep them.
    package var names: NameStyle?
    package var dates: DateRule?
    /// The paths of the members whose texts are data in base64.
    package var data: [[String]]
    /// The most bytes of content that is read as a whole.
    package var limit: Int
    /// The part of a multipart content that the client's content becomes unchanged; nil if its members become parts.
    package var upload: UploadPart?
    /// The parts of a multipart content that are files of the configuration.
    package var files: [FilePart]

    /// Whether the content is changed; a limit alone is for parameters that are looked for in it.
    var changesContent: Bool {
        encoding != nil || defaults != .empty || stripsNulls || names != nil || dates != nil || !data.isEmpty
            || upload != nil || !files.isEmpty
    }

    package init(
        encoding: ContentEncodingFormat? = nil,
        defaults: ContentTree = .empty,
        stripsNulls: Bool = false,
        names: NameStyle? = nil,
        dates: DateRule? = nil,
        data: [[String]] = [],
        limit: Int = BodyShape.defaultLimit,
        upload: UploadPart? = nil,
        files: [FilePart] = []
    ) {
        self.encoding = encoding
        self.defaults = defaults
        self.stripsNulls = stripsNulls
        self.names = names
        self.dates = dates
        self.data = data
        self.limit = limit
        self.upload = upload
        self.files = files
    }
}

/// The members that are times, and the form in which they are sent.
package struct DateRule: Sendable, Equatable {
    /// The paths of these members.
    package var members: [[String]]
    package var form: DateForm

    package init(members: [[String]], form: DateForm) {
        self.members = members
        self.form = form
    }
}

/// The part that the client's content becomes.
package struct UploadPart: Sendable, Equatable {
    package var name: String
    package var filename: String
    /// The type of the part; nil for that of the client's content.
    package var type: String?

    package init(name: String, filename: String, type: String? = nil) {
        self.name = name
        self.filename = filename
        self.type = type
    }
}

/// A part that is a file of the configuration.
package struct FilePart: Sendable, Equatable {
    package var name: String
    package var filename: String
    package var type: String
    package var bytes: [UInt8]

    package init(name: String, filename: String, type: String, bytes: [UInt8]) {
        self.name = name
        self.filename = filename
        self.type = type
        self.bytes = bytes
    }
}
