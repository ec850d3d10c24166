// What of a request makes it another one than those before it, for the store.

import HTTPCaching
public import HTTPTypes

extension DownloadConfiguration {
    /// What a stored response is found by, besides its URL, and what of the URL does not count.
    public struct Keys: Sendable, Hashable {
        /// Names of query items that do not count, such as `utm_*`: `*` stands for anything, and names are compared as
        /// they are sent. The origin gets such items only where nothing may be stored
        /// (``DownloadOptions/bypassesStore``). None by default.
        public var ignoredQueryItems: [String]
        /// Fields of the request whose values count, for an origin that answers by them without saying so in Vary; none
        /// by default.
        public var fields: [HTTPField.Name]

        /// Keys by these rules.
        public init(ignoredQueryItems: [String] = [], fields: [HTTPField.Name] = []) {
            self.ignoredQueryItems = ignoredQueryItems
            self.fields = fields
        }
    }
}

extension DownloadConfiguration.Keys {
    var rules: KeyRules { KeyRules(ignoreQuery: ignoredQueryItems, fields: fields.map(\.canonicalName)) }
}
