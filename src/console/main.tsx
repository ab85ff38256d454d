import './style/layers.css';
import './style/tokens.css';
import './style/base.css';
import './style/print.css';

import { render } from 'preact';
import { App } from './app.tsx';
import { applyTheme, storedTheme } from './theme.ts';

const root = document.getElementById('app');
if (root === null) throw new Error('index.html has no element #app');
applyTheme(storedTheme());
render(<App />, root);
