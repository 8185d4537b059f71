// The compiled parts of Asio and Beast, once for the whole program: BOOST_ASIO_SEPARATE_COMPILATION and
// BOOST_BEAST_SEPARATE_COMPILATION keep them out of every other translation unit, where they would be compiled again.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
