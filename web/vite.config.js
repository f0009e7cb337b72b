import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// One script and one style sheet, whose names never change: they are part of the program.
export default defineConfig({
  base: './',
  plugins: [react()],
  build: {
    chunkSizeWarningLimit: 2000,
    modulePreload: false,
    rollupOptions: {
      output: {
        codeSplitting: false,
        entryFileNames: 'assets/page.js',
        assetFileNames: 'assets/page[extname]',
      },
    },
  },
});
