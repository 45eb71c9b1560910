/** The reader's file, as it is served. */
declare module 'pdfjs-dist/build/pdf.worker.min.mjs?url' {
  const url: string
  export default url
}

interface Window {
  readonly trustedTypes?: {
    createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(input: string): string }
  }
}
