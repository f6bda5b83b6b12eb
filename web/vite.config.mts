import { defineConfig } from 'vitest/config';

// The server's Content-Security-Policy allows no inline script, style or data: module, so nothing is inlined and
// no polyfill is written into the page.
export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    sourcemap: false,
  },
  test: { environment: 'jsdom', include: ['test/unit/**/*.test.{ts,tsx}'] },
});
