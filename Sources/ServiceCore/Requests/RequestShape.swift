// What an endpoint makes of a request before it is sent: another target, parameters, another content.

package import Content
package import Policies

/// A parameter of the configuration.
package struct DefaultParameter: Sendable, Equatable {
    package let name: String
    /// What it is where the request does not name it.
    package let value: ContentTree

    package init(_ name: String, _ value: ContentTree) {
        self.name = name
        self.value = value
    }
}

/// Of one endpoint; an endpoint without any of it has none. An object, so that plans without one stay small.
///
/// Sendable: nothing in it changes.
package final class RequestShape: Sendable, Equatable {
    /// The target below the base URL; nil: the client's path.
    package let to: TargetTemplate?
    package let parameters: [DefaultParameter]
    /// Where parameters go that `to` does not use.
    package let placement: ParameterPlacement
    package let style: FormStyle
    /// What becomes of the content; nil: it is passed on as it comes.
    package let body: BodyShape?
    /// Of the endpoint.
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

    /// The bytes of content that are read where it is read as a whole.
    package var contentLimit: Int { body?.limit ?? BodyShape.defaultLimit }

    /// Whether the content is made anew, which is read as a whole for that unless it is a part of a multipart content.
    package var changesContent: Bool {
        if let body, body.changesContent { return true }
        let used = to?.parameters ?? []
        return placement == .body && parameters.contains { !used.contains($0.name) }
    }

    /// Whether one parameter of `to` may be in the content of the request with this target.
    package func looksIntoContent(for rest: String) -> Bool {
        guard let to else { return false }
        let request = TargetParts(rest, pattern)
        return to.parameters.contains { request.path[$0] == nil && request.places(of: $0).isEmpty }
    }
}

/// What becomes of a content.
package struct BodyShape: Sendable, Equatable {
    /// 1 MiB.
    package static let defaultLimit = 1 << 20

    /// Nil: as it came; JSON where it did not come at all.
    package var encoding: ContentEncodingFormat?
    package var defaults: ContentTree
    package var stripsNulls: Bool
    /// Nil: names stay as they are.
    package var names: NameStyle?
    package var dates: DateRule?
    /// Paths of the members whose texts are data in base64.
    package var data: [[String]]
    /// The bytes of content that are read as a whole.
    package var limit: Int
    /// The client's content as it comes is this part of a multipart content; nil: its members are the parts.
    package var upload: UploadPart?
    /// Parts of a multipart content that are files of the configuration.
    package var files: [FilePart]

    /// Something is made of the content; a limit alone is for parameters that are looked for in it.
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

/// Which members are times, and how they are sent.
package struct DateRule: Sendable, Equatable {
    /// Paths of members.
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
    /// Nil: that of the client's content.
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
