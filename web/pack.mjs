// Puts the built page, compressed, where the program takes it from: node pack.mjs TARGET_FOLDER
import { mkdirSync, readFileSync, readdirSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const target = process.argv[2];
mkdirSync(target, { recursive: true });

const pack = (name, bytes) => {
  const packed = gzipSync(bytes, { level: 9 });
  packed[9] = 255; // the system that packed it, which makes no difference
  writeFileSync(join(target, `${name}.gz`), packed);
  console.log(`${name}: ${bytes.length} bytes, ${packed.length} compressed`);
};

/** The licences of every package of which something may be in the page. */
function licences() {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const parts = [];
  for (const [folder, found] of Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (folder === '' || found.dev || found.optional || folder.includes('/@types/') || !existsSync(folder)) continue;
    const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? readFileSync(join(folder, file), 'utf8').trim() : `Licence: ${found.license}`;
    parts.push(`${name} ${found.version} (${found.license})\n\n${text}\n`);
  }
  return parts.join(`\n${'-'.repeat(80)}\n\n`);
}

const script = readFileSync('dist/assets/page.js');
pack('index.html', readFileSync('dist/index.html'));
pack('page.js', script);
pack('page.css', readFileSync('dist/assets/page.css'));
pack('licenses.txt', Buffer.from(licences()));
