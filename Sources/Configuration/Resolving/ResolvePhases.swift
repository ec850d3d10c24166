// Placeholders and fallbacks: their files, and what they need beside them.

import HTTPCaching

extension Resolver {
    mutating func placeholder(_ cache: SectionReader) -> PlaceholderConfiguration? {
        guard let answer = standIn(cache, "placeholder") else { return nil }
        let result = PlaceholderConfiguration(answer: answer, cache.section("placeholder"))
        if cache.text("mode") == CacheMode.none.rawValue {
            fail(
                place(cache, "placeholder"),
                "'cache.placeholder' is for responses that are stored, but 'cache.mode' is none; remove it, or write placeholder: { file: none }"
            )
        }
        return result
    }

    /// The file under `placeholder` or `fallback`; nil where there is none.
    mutating func standIn(_ cache: SectionReader, _ key: String) -> StandInConfiguration? {
        let reader = cache.section(key)
        guard cache.entry(key) != nil, let path = reader.text("file") else { return nil }
        let result = StandInConfiguration(file: path, reader)
        if let problem = FileChecks.readable(path, atMost: FileChecks.largestDemoFile) {
            fail(place(reader, "file"), file: "'cache.\(key).file' \(problem)")
        }
        if [204, 205, 304].contains(result.status) {
            fail(
                place(reader, "status"),
                "a \(result.status) has no body, so 'cache.\(key).file' would never be sent; write another status"
            )
        }
        demoFiles.append(path)
        return result
    }
}
