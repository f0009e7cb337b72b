import '@h5web/app/styles.css';
import './page.css';

import { createRoot } from 'react-dom/client';

import { Faults } from './faults';
import { FileList } from './file_list';
import { FilePage } from './file_page';

const query = new URLSearchParams(location.search);
const file = query.get('file');

createRoot(document.getElementById('root')).render(
  <Faults>
    {file ? <FilePage file={file} path={query.get('path') ?? '/'} /> : <FileList folder={query.get('folder') ?? ''} />}
  </Faults>,
);
