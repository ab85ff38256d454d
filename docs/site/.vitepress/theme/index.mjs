// The fonts are those of the reader's system.
import theme from 'vitepress/theme-without-fonts';

export default theme;
