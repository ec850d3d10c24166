// What an endpoint makes of a request: its target, its parameters, its content.

package import Content
package import Policies

/// Of one endpoint.
package struct RequestConfiguration: Sendable, Equatable {
    /// The target below the base URL; nil: the client's path.
    package var to: TargetTemplate?
    /// Defaults, in the order of the file.
    package var params: [ContentTree.Member]
    /// Where they go if `to` does not use them. Default: by the method.
    package var placement: ParameterPlacement
    package var style: FormStyle
    /// Whether the style is another one than the default.
    package var hasStyle: Bool
    /// Nil: the content goes on as it comes.
    package var body: BodyConfiguration?

    /// Nothing is made of a request.
    package var isEmpty: Bool { to == nil && params.isEmpty && !hasStyle && body == nil }
}

/// What becomes of a content.
package struct BodyConfiguration: Sendable, Equatable {
    /// Nil: as it came.
    package var encode: ContentEncodingFormat?
    /// An object.
    package var defaults: ContentTree
    package var stripNulls: Bool
    package var keys: NameStyle?
    /// Paths of members that are times.
    package var dates: [[String]]
    /// Nil without dates.
    package var dateForm: DateForm?
    /// Paths of members that are data.
    package var data: [[String]]
    /// Bytes. Default: 1 MiB.
    package var max: Int
    package var upload: UploadConfiguration?
    package var files: [FilePartConfiguration]

    /// A member carries credentials, by its name.
    package var hasSecrets: Bool { defaults.hasSecretNames }
}

/// The part that the client's content becomes.
package struct UploadConfiguration: Sendable, Equatable {
    package var name: String
    package var filename: String
    package var type: String?
}

/// A part that is a file.
package struct FilePartConfiguration: Sendable, Equatable {
    package var name: String
    /// Absolute.
    package var path: String
    package var filename: String
    package var type: String?
}
