// The table of keys, fourth part: seeds, and resources that are kept as files.

import Policies

extension KeyTable {
    /// Part of `cache` in services, endpoints and forward mode.
    static let seeds: [KeyDescriptor] = [
        KeyDescriptor(
            "seed_dir",
            .path,
            "A folder of responses that exist before anything was fetched.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "seed_mode",
            .choice(SeedMode.allCases.map(\.rawValue)),
            default: "pinned",
            "pinned searches the folder first, and its responses never become stale; import copies responses that are not stored yet, as stale responses, so that their first use validates them.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "seed_layout",
            .choice(SeedLayout.allCases.map(\.rawValue)),
            default: "url",
            "url has files named HOST/PATH; docker has files named MD5(PARENT)_NAME, with property lists of dates.",
            inherited: .endpoints
        ),
    ]

    /// `cache` of an endpoint, which may be one resource.
    static let endpointCache = SectionDescriptor(
        name: "cache",
        keys: serviceCache.keys + [
            KeyDescriptor(
                "store_as",
                .text(.storedPath),
                "A path under files/ of the disk tier, where the latest stored response is also kept as a plain file."
            )
        ]
    )

    /// The keys that endpoints inherit from their service, as endpoints have them.
    static let endpointShared: [KeyDescriptor] = shared.map { key in
        let ofEndpoints = ["cache": endpointCache, "demo": endpointDemo]
        guard let section = ofEndpoints[key.name] else { return key }
        return KeyDescriptor(key.name, .section(section), key.doc, inherited: key.inheritance)
    }
}
