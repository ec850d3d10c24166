// What demo answers get wrong on purpose, beside their content and their framing, as a configuration chooses it.

/// One thing that a demo rule gets wrong, and in which of its answers.
package struct Misbehaviour: Sendable, Equatable {
    /// The raw value is the word of configurations and of Drydock-Demo. New kinds stand at the end: the place of a kind
    /// is a part of what it draws.
    package enum Kind: String, Sendable, CaseIterable {
        /// Content-Length of an answer to HEAD is that of the answer to GET, and one byte more.
        case headLength = "head_length"
        /// The entity tag of an answer to HEAD is not that of the answer to GET.
        case headETag = "head_etag"
        /// A success of GET is a 404 to HEAD.
        case headStatus = "head_status"
        /// The entity tag is one that no other answer has.
        case etagFlips = "etag_flips"
        /// 200 with the whole content, where the conditions of the request ask for a 304.
        case no304 = "no_304"
        /// A 304 has no validator.
        case bare304 = "bare_304"
        /// Vary has the member `*`.
        case varyStar = "vary_star"
        /// Date is not the time of the answer.
        case date
        /// There is an Age, though no cache had the answer.
        case age

        /// The number in a configuration that it needs.
        package var takesTime: Bool { self == .date || self == .age }
    }

    package var kind: Kind
    /// The share of answers that it is in, 0...1.
    package var chance: Double
    /// It is in each so-many-th answer to requests of one method and target; nil: in all.
    package var every: Int?
    /// Of `date` by how much the field is ahead, of `age` what the field says; 0 of the others.
    package var seconds: Int64

    package init(_ kind: Kind, chance: Double = 1, every: Int? = nil, seconds: Int64 = 0) {
        self.kind = kind
        self.chance = chance
        self.every = every
        self.seconds = seconds
    }
}
