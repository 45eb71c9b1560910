# Made by clients/python/generate.ts from the server’s OpenAPI document.

#: Fields whose own fields are the caller’s, not the API’s.
FREE_FORM = frozenset(
    {
        "args",
        "headers",
        "labels",
        "metadata",
        "responseFormat",
        "skillDigests",
    }
)
