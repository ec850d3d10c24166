// Digests against the test vectors of their specifications.

import Testing

@testable import HTTPCaching

@Suite struct ContentDigestTests {
    @Test(arguments: [
        ("", "d41d8cd98f00b204e9800998ecf8427e"), ("abc", "900150983cd24fb0d6963f7d28e17f72"),
        // A file that the old download manager left behind has this name.
        ("http:/images.freeimages.com/images/previews/aaa", "653ca195caf9f8c3870eea1a2144d72f"),
    ])
    func md5(text: String, expected: String) { #expect(ContentDigest.md5.hex(text.utf8) == expected) }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
    func sha256(text: String, expected: String) { #expect(ContentDigest.sha256.hex(text.utf8) == expected) }
}
