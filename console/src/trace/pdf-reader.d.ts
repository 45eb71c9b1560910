/** The reader has no types of its own; it is handed on whole. */
declare module 'pdfjs-dist/build/pdf.worker.mjs'
