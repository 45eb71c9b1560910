/** Builds the console into dist/, which the server serves under /console. */
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  base: '/console/',
  plugins: [react(), tailwindcss()],
  build: {
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // The policy of the page lets in no data: address but for images, and needs no polyfill that writes scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: {
      '^/(v1beta|openapi|readyz|console/(api|auth|openapi))': process.env.ERRAND_URL ?? 'http://127.0.0.1:8080',
    },
  },
})
