import { render } from 'preact';
import { App } from './app.tsx';
import './style.css';
import { applyTheme, storedTheme } from './theme.ts';

const root = document.getElementById('app');
if (root === null) throw new Error('index.html has no element #app');
applyTheme(storedTheme());
render(<App />, root);
